/** Type declarations of the parts of autocannon that the benchmark uses; the package has none. */
declare module "autocannon" {
  import type { EventEmitter } from "node:events";

  type Request = { method?: string; path?: string; headers?: Record<string, string>; body?: string };
  type Options = {
    url: string;
    connections: number;
    duration: number;
    timeout?: number;
    method?: string;
    headers?: Readonly<Record<string, string>> | undefined;
    body?: string | undefined;
    requests?: Request[] | undefined;
  };
  /**
   * Sends requests to a URL. The returned emitter emits `response` (client, status code, bytes, milliseconds) and
   * `done`.
   */
  export default function autocannon(options: Options, done: (error: Error | null) => void): EventEmitter;
}

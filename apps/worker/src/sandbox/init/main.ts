/**
 * `sandbox-init` executes the worker's requests inside a sandbox. When its standard input ends, it exits and kills
 * everything that it started.
 */
import { Commands, shellName } from "./exec.ts";
import { listDirectory, readChunk, statPath, writeChunk } from "./files.ts";
import { LineSplitter } from "./lines.ts";
import { Fault, type ResponseMessage, type HelloValue, type Request } from "./protocol.ts";
import { Programs } from "./programs.ts";
import { relay } from "./relay.ts";

const commands = new Commands();
const programs = new Programs();
const input = new LineSplitter();
let env: Record<string, string> = {};

function respond(message: ResponseMessage): void {
  process.stdout.write(`${JSON.stringify(message)}\n`);
}

async function perform(request: Request): Promise<unknown> {
  switch (request.op) {
    case "hello":
      env = request.env;
      commands.addSecrets(request.secrets);
      programs.addSecrets(request.secrets);
      await Promise.all(request.relays.map(relay));
      return { pid: process.pid, shell: shellName() } satisfies HelloValue;
    case "exec":
      return commands.run(request, env);
    case "stop":
      return { stopped: commands.stop(request.exec) };
    case "output":
      return commands.output(request.exec);
    case "open":
      return programs.run(request, env);
    case "put":
      return programs.put(request);
    case "take":
      return programs.take(request.open);
    case "close":
      programs.stop(request.open);
      return {};
    case "terminate":
      commands.signalAll("SIGTERM");
      programs.signalAll("SIGTERM");
      return {};
    case "read":
      return readChunk(request);
    case "write":
      return writeChunk(request);
    case "stat":
      return statPath(request);
    case "list":
      return listDirectory(request);
    default:
      throw new Fault("invalid_request", "Unknown operation.");
  }
}

function handle(line: string): void {
  const request = JSON.parse(line) as Request;
  perform(request).then(
    (value) => respond({ id: request.id, ok: true, value }),
    (error: unknown) =>
      respond({
        id: request.id,
        ok: false,
        code: error instanceof Fault ? error.code : "io_error",
        message: error instanceof Error ? error.message : "unknown error",
      }),
  );
}

function leave(): void {
  commands.signalAll("SIGKILL");
  programs.signalAll("SIGKILL");
  process.exit(0);
}

process.stdin.on("data", (chunk: Buffer) => input.push(chunk).forEach(handle));
process.stdin.on("end", leave);
process.stdin.on("error", leave);
process.stdout.on("error", leave);
for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"] as const) process.on(signal, leave);

import { randomUUID } from "node:crypto";
import { mkdir } from "node:fs/promises";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { join } from "node:path";
import type { JsonObject } from "@bufbuild/protobuf";
import { say } from "../egress/egress-proxy.ts";
import { listenOnSocket } from "../egress/unix-socket.ts";
import type { ExecutionContext, TokenCounts } from "../executions/execution-context.ts";
import { refusalIn } from "@millwright/outbound";
import { isAnObject } from "../model/event-fields.ts";
import type { RunFailure } from "../model/model-provider.ts";
import { callFailure } from "../model/wires/call-failure.ts";
import { LIMITED_OUTPUT_TOKENS, reservePlanned } from "../model/wires/cost-reservation.ts";
import { countsIn } from "../model/wires/token-counts.ts";
import type { TokenBudget } from "../harness/token-budget.ts";
import { GATEWAY_PORT, type Relay } from "../sandbox/spec.ts";
import { systemTimers } from "../time.ts";
import { gatewayWire, type GatewayEnding, type GatewayWire, type WireCall } from "./gateway-wires.ts";
import { answerMcp, type PlatformTools } from "./platform-mcp.ts";

const BODY_BYTES_MAX = 64 * 1024 * 1024;
const CHARACTERS_PER_TOKEN = 3.5;
const STEP_LIMIT = 200;
/** Headers that a provider goes by; the key is ours. */
const PASSED_HEADERS = ["content-type", "accept", "anthropic-version", "anthropic-beta", "openai-beta", "user-agent"];
const PASSED_BACK = ["content-type", "retry-after", "request-id", "x-request-id"];
/** Refusals that no repetition changes. */
const FINAL = [401, 402, 403];

/** One request of a harness. */
type Asked = { readonly request: IncomingMessage; readonly response: ServerResponse; readonly wire: GatewayWire; readonly call: WireCall; readonly path: string; readonly query: string };

export type GatewayDeps = { readonly ctx: ExecutionContext; readonly budget: TokenBudget };

/**
 * What a harness of others has for a model: a unix socket that leads here. Calls get the provider's key, are counted, and are refused when the
 * run may spend no more; nothing else of the provider can be reached. Under `/mcp` it finds the platform's tools.
 */
export class ModelGateway {
  readonly relay: Relay;
  /** Set as soon as there is a workspace to work in. */
  platformTools: PlatformTools | undefined;
  /** Told once of what ends the run, whatever the harness makes of it. */
  onFailure: (failure: RunFailure) => void = () => {};
  readonly #deps: GatewayDeps;
  readonly #closed = new AbortController();
  /** Aborted when the turn is to end by what the model seems to say. */
  #turn = new AbortController();
  #isHeld = false;
  #close: () => void = () => {};
  #failure: RunFailure | undefined;
  #calls = 0;

  private constructor(deps: GatewayDeps, socket: string) {
    this.#deps = deps;
    this.relay = { port: GATEWAY_PORT, socket };
  }

  /** Errors: those of the file system. */
  static async listen(deps: GatewayDeps): Promise<ModelGateway> {
    const directory = join(deps.ctx.dir, `gate-${randomUUID().slice(0, 8)}`);
    await mkdir(directory, { recursive: true, mode: 0o755 });
    const gateway = new ModelGateway(deps, join(directory, "gateway.sock"));
    const server = createServer({ requestTimeout: 0 }, (request, response) => void gateway.#answer(request, response).catch(() => response.destroy()));
    server.on("clientError", (_error, socket) => socket.destroy());
    const release = await listenOnSocket(server, gateway.relay.socket);
    gateway.#close = () => {
      server.close(release);
      server.closeAllConnections();
    };
    return gateway;
  }

  /** The turn has its end: the model is asked for no further step, until the harness has been told. */
  hold(): void {
    this.#isHeld = true;
  }

  /** The same, and calls that are under way or still come are answered so that the harness ends its turn by itself. */
  endTurn(): void {
    this.hold();
    this.#turn.abort(new Error("The turn has its end."));
  }

  /** A turn begins. */
  release(): void {
    this.#isHeld = false;
    if (this.#turn.signal.aborted) this.#turn = new AbortController();
  }

  /** Ends every call. */
  close(): void {
    this.#closed.abort(new Error("The gateway is closed."));
    this.#close();
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { pathname, searchParams } = new URL(request.url ?? "/", "http://gateway");
    if (request.method === "HEAD" && pathname === "/") return void response.writeHead(200).end();
    if (request.method !== "POST") return say(response, 405, "This is not served here.");
    const body = parse(await readBody(request));
    if (pathname === "/mcp") return this.#mcp(body, response);
    const wire = gatewayWire(this.#deps.ctx.assignment.provider);
    const call = wire?.read(pathname, isAnObject(body) ? body : {});
    if (!wire || !call) return say(response, 404, "This is not served here.");
    if (this.#isHeld) return this.#wait(response, wire, pathname);
    if (!isAnObject(body)) return refuse(response, 400, "The body is no JSON object.");
    searchParams.delete("key"); // one way of some to give it
    return this.#call({ request, response, wire, call, query: searchParams.size === 0 ? "" : `?${searchParams.toString()}`, path: pathname }, body);
  }

  /** Until the harness has been told that its turn is over: it gives up, or gets an answer that says so. */
  async #wait(response: ServerResponse, { ending }: GatewayWire, path: string): Promise<void> {
    const { signal } = this.#turn;
    if (!signal.aborted) await new Promise((resolve) => (response.once("close", resolve), signal.addEventListener("abort", resolve, { once: true })));
    if (ending && signal.aborted) answerWith(response, ending(path));
  }

  async #mcp(body: unknown, response: ServerResponse): Promise<void> {
    if (!this.platformTools) return say(response, 503, "There is no workspace yet.");
    const answer = await answerMcp(this.platformTools, body);
    if (!answer) return void response.writeHead(202).end();
    response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(answer));
  }

  async #call({ request, response, wire, call, path, query }: Asked, asked: JsonObject): Promise<void> {
    const { ctx, budget } = this.#deps;
    const { executionId, attempt, provider, providerCredentials, stepLimit } = ctx.assignment;
    const { apiKey = "", baseUrl = "", operatorSet = false } = providerCredentials ?? {};
    const callId = `e${executionId}-a${attempt}-h${(this.#calls += 1)}`;
    const limit = stepLimit || STEP_LIMIT;
    const overLimit: RunFailure | undefined = this.#calls > limit ? { code: "budget_exceeded", message: `The agent took more than ${limit} steps.`, retryable: false, reason: "step_limit" } : undefined;
    const [body, tooCostly] = await this.#within(asked, wire, call);
    const failure = this.#failure ?? budget.exceeded() ?? overLimit ?? tooCostly;
    if (failure) return this.#fail(response, failure);
    await ctx.doors.whenOpen();
    const headers = Object.fromEntries(PASSED_HEADERS.flatMap((name) => (request.headers[name] === undefined ? [] : [[name, String(request.headers[name])]])));
    const { signal: turn } = this.#turn;
    const signal = AbortSignal.any([ctx.signal, this.#closed.signal, ...(wire.ending ? [turn] : [])]);
    const ending = (): GatewayEnding | undefined => (turn.aborted ? wire.ending?.(path) : undefined);
    // Whoever runs the platform may name any address for a model; a team may not name an internal one.
    const reach = operatorSet ? fetch : ctx.outbound.fetch;
    const answer = await reach(wire.url(baseUrl, path) + query, { method: "POST", headers: { ...headers, ...wire.key(apiKey) }, body: JSON.stringify(wire.mended?.(body) ?? body), redirect: "error", signal }).catch((error: unknown) => refusalIn(error));
    if (answer instanceof Error) return this.#fail(response, callFailure(provider, answer).failure);
    const last = answer ? undefined : ending();
    if (last) return answerWith(response, last);
    if (!answer) return refuse(response, 502, "The model provider cannot be reached.");
    if (FINAL.includes(answer.status)) return this.#fail(response, callFailure(provider, { statusCode: answer.status, message: (await answer.text()).slice(0, 500) }).failure);
    response.writeHead(answer.status, Object.fromEntries(PASSED_BACK.flatMap((name) => (answer.headers.get(name) === null ? [] : [[name, answer.headers.get(name)!]]))));
    const usage = await this.#passBack(answer, response, ending);
    ctx.modelCalled(provider, answer.ok ? "ok" : "model_unavailable");
    if (call.kind === "count" || !answer.ok || Object.keys(usage).length === 0) return;
    budget.spend(usage);
    await ctx.platform.reportUsage({ callId, modelId: call.modelId || ctx.assignment.modelId, usage });
  }

  /** Under a cost limit: the greatest cost set aside, and the answer no longer than that. */
  async #within(asked: JsonObject, wire: GatewayWire, { kind, modelId }: WireCall): Promise<[JsonObject, RunFailure | undefined]> {
    const { assignment, platform, signal } = this.#deps.ctx;
    if (!assignment.costLimited || kind === "count") return [asked, undefined];
    const wanted = wire.outputLimit(asked);
    const most = Math.min(typeof wanted === "number" ? wanted : LIMITED_OUTPUT_TOKENS, LIMITED_OUTPUT_TOKENS);
    const planned = { modelId: modelId || assignment.modelId, inputTokens: Math.ceil(JSON.stringify(asked).length / CHARACTERS_PER_TOKEN), outputTokens: most };
    return [wire.limited(asked, most), await reservePlanned(planned, { reserveCost: (call) => platform.reserveCost(call), timers: systemTimers }, signal)];
  }

  /** Hands the answer on as it comes; answers what it says of tokens. */
  async #passBack(answer: Response, response: ServerResponse, ending: () => GatewayEnding | undefined): Promise<TokenCounts> {
    let counted: TokenCounts = {};
    let rest = "";
    const decoder = new TextDecoder();
    const isStream = (answer.headers.get("content-type") ?? "").includes("event-stream");
    const count = (text: string): void => {
      const value = parse(text);
      if (value !== undefined) counted = { ...counted, ...countsIn(value) };
    };
    try {
      for await (const chunk of answer.body ?? []) {
        this.#deps.ctx.doors.assertOpen();
        if (!response.write(chunk)) await new Promise((resolve) => response.once("drain", resolve).once("close", resolve));
        rest += decoder.decode(chunk as Uint8Array, { stream: true });
        if (!isStream) continue;
        const lines = rest.split("\n");
        rest = lines.pop() ?? "";
        for (const line of lines) if (line.startsWith("data:")) count(line.slice("data:".length));
      }
      if (!isStream) count(rest);
      response.end();
    } catch {
      const last = isStream && rest === "" ? ending() : undefined; // in the middle of a line nothing can be said
      if (last) response.end(last.body);
      else response.destroy();
    }
    return counted;
  }

  #fail(response: ServerResponse, failure: RunFailure): void {
    if (!this.#failure) {
      this.#failure = failure;
      this.onFailure(failure);
    }
    refuse(response, 400, failure.message);
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

async function readBody(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    if ((bytes += chunk.length) > BODY_BYTES_MAX) throw new Error("The request is too large.");
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

function answerWith(response: ServerResponse, { contentType, body }: GatewayEnding): void {
  response.writeHead(200, { "content-type": contentType }).end(body);
}

/** As the provider would say it, so that the harness understands that it is final. */
function refuse(response: ServerResponse, status: number, message: string): void {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify({ type: "error", error: { type: status === 400 ? "invalid_request_error" : "api_error", message } }));
}

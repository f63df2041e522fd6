import { randomUUID } from "node:crypto";
import { mkdir } from "node:fs/promises";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { join } from "node:path";
import type { JsonObject } from "@bufbuild/protobuf";
import { respondText } from "../egress/forwarding.ts";
import { listenOnSocket } from "../egress/unix-socket.ts";
import type { ExecutionContext } from "../context/execution-context.ts";
import type { PlannedCall } from "../context/platform-client.ts";
import { refusalIn } from "@millwright/outbound";
import { isAnObject } from "../model/event-fields.ts";
import type { RunFailure } from "../model/model-provider.ts";
import { callFailure } from "../model/wires/call-failure.ts";
import { tokensIn } from "../model/wires/compaction.ts";
import { withDefaultModel } from "../model/wires/default-model.ts";
import { LIMITED_OUTPUT_TOKENS, reservePlanned } from "../model/wires/cost-reservation.ts";
import { interruptedUsage } from "../model/wires/token-counts.ts";
import type { TokenBudget } from "../conversation/token-budget.ts";
import { GATEWAY_PORT, type Relay } from "../sandbox/spec.ts";
import { atMost, systemTimers } from "../time/timers.ts";
import { gatewayWire, type GatewayEnding, type GatewayWire, type WireCall } from "./gateway-wires.ts";
import { parsedJson } from "./json-rpc.ts";
import { maskRequest } from "./mask-request.ts";
import { RelayedResponse } from "./relayed-response.ts";
import { handleMcp, type PlatformTools } from "./platform-mcp.ts";
import { ProviderRefusals } from "./provider-refusals.ts";
import { StepCount } from "./step-count.ts";

const BODY_BYTES_MAX = 64 * 1024 * 1024;
/** How long calls of an ended program may take to finish. Calls of other processes in its sandbox are aborted. */
const SETTLING_MS = 5_000;
/** The maximum length of an error body. */
const REFUSAL_CHARACTERS_MAX = 100_000;
/** Request headers that are forwarded. The key is added by the gateway. */
const FORWARDED_HEADERS = [
  "content-type",
  "accept",
  "anthropic-version",
  "anthropic-beta",
  "openai-beta",
  "user-agent",
];
const RETURNED_HEADERS = ["content-type", "retry-after", "request-id", "x-request-id"];

/** One request of a harness. */
type GatewayRequest = {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly wire: GatewayWire;
  readonly call: WireCall;
  readonly path: string;
  readonly query: string;
};

export type GatewayDeps = { readonly ctx: ExecutionContext; readonly budget: TokenBudget };

/**
 * The model access of a third-party harness, through a Unix socket. The gateway adds the provider's key to calls,
 * counts them, and rejects them if the run's limits are exceeded. No other endpoint of the provider is reachable.
 * `/mcp` serves the platform's tools.
 */
export class ModelGateway {
  readonly relay: Relay;
  /** Set when the workspace is ready. */
  platformTools: PlatformTools | undefined;
  /** Called once with the failure that ends the run, however the harness handles it. */
  onFailure: (failure: RunFailure) => void = () => {};
  readonly #deps: GatewayDeps;
  /** The operator may configure any address for a model; a team may not configure an internal one. */
  readonly #fetch: typeof fetch;
  readonly #closed = new AbortController();
  /** Aborted when the turn is to end with a synthetic response. */
  #turn = new AbortController();
  #isPaused = false;
  #close: () => void = () => {};
  #failure: RunFailure | undefined;
  #calls = 0;
  readonly #steps: StepCount;
  readonly #refusals: ProviderRefusals;
  /** The responses to steps since the turn began. */
  #answers: RelayedResponse[] = [];
  readonly #pendingCalls = new Set<Promise<void>>();
  /** The newest call under a cost limit; it settles after all earlier ones. */
  #limitedCalls: Promise<unknown> = Promise.resolve();

  private constructor(deps: GatewayDeps, socket: string) {
    this.#deps = deps;
    const { assignment, outbound } = deps.ctx;
    const { baseUrl = "", operatorSet = false } = assignment.providerCredentials ?? {};
    const reach = operatorSet ? fetch : outbound.fetch;
    this.#fetch = assignment.provider === "openai-compatible" ? withDefaultModel(reach, baseUrl) : reach;
    this.#steps = new StepCount(deps.ctx.assignment.stepLimit);
    this.#refusals = new ProviderRefusals(deps.ctx.assignment.provider);
    this.relay = { port: GATEWAY_PORT, socket };
  }

  /** Creates a gateway that listens on a Unix socket. Throws file system errors. */
  static async listen(deps: GatewayDeps): Promise<ModelGateway> {
    const directory = join(deps.ctx.dir, `gate-${randomUUID().slice(0, 8)}`);
    await mkdir(directory, { recursive: true, mode: 0o755 });
    const gateway = new ModelGateway(deps, join(directory, "gateway.sock"));
    const server = createServer(
      { requestTimeout: 0 },
      (request, response) => void gateway.#handle(request, response).catch(() => response.destroy()),
    );
    server.on("clientError", (_error, socket) => socket.destroy());
    const release = await listenOnSocket(server, gateway.relay.socket);
    gateway.#close = () => {
      server.close(release);
      server.closeAllConnections();
    };
    return gateway;
  }

  /** Pauses model calls at the end of the turn, until the harness has been notified. */
  pause(): void {
    this.#isPaused = true;
  }

  /** Pauses model calls, and gives current and later calls a response that makes the harness end its turn. */
  endTurn(): void {
    this.pause();
    this.#turn.abort(new Error("The turn has ended."));
  }

  /** Starts a turn. */
  release(): void {
    this.#isPaused = false;
    this.#answers = [];
    this.#refusals.clear();
    if (this.#turn.signal.aborted) this.#turn = new AbortController();
  }

  /** The provider's permanent refusal of the turn's last step. */
  get refusal(): RunFailure | undefined {
    return this.#refusals.open;
  }

  /** How many steps of the turn were answered, and how many of them the provider has counted. */
  get answeredSteps(): { readonly answered: number; readonly counted: number } {
    return { answered: this.#answers.length, counted: this.#answers.filter(({ isCounted }) => isCounted).length };
  }

  /** Resolves when every call has ended and its usage is reported, or after `SETTLING_MS`. Never rejects. */
  settled(): Promise<void> {
    return atMost(systemTimers, SETTLING_MS, Promise.allSettled([...this.#pendingCalls]));
  }

  /** Ends every call. */
  close(): void {
    this.#closed.abort(new Error("The gateway is closed."));
    this.#close();
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { pathname, searchParams } = new URL(request.url ?? "/", "http://gateway");
    if (request.method === "HEAD" && pathname === "/") return void response.writeHead(200).end();
    if (request.method !== "POST") return respondText(response, 405, "This is not served here.");
    const body = parsedJson(await readBody(request));
    if (pathname === "/mcp") return this.#mcp({ request, response, body });
    const wire = gatewayWire(this.#deps.ctx.assignment.provider);
    const call = wire?.read(pathname, isAnObject(body) ? body : {});
    if (!wire || !call) return respondText(response, 404, "This is not served here.");
    if (this.#isPaused) return this.#wait(response, wire, pathname);
    if (!isAnObject(body)) return refuse(response, 400, "The body must be a JSON object.");
    searchParams.delete("key"); // some clients send the key as a query parameter
    const incomingCall = {
      request,
      response,
      wire,
      call,
      query: searchParams.size === 0 ? "" : `?${searchParams.toString()}`,
      path: pathname,
    };
    const pendingCall = this.#sequenced(call, async () =>
      response.closed ? undefined : this.#call(incomingCall, body),
    );
    this.#pendingCalls.add(pendingCall);
    return pendingCall.finally(() => this.#pendingCalls.delete(pendingCall));
  }

  /**
   * Delays a call until the harness has been notified of the end of its turn. The harness then closes the call, or
   * receives a response that ends the turn.
   */
  async #wait(response: ServerResponse, { ending }: GatewayWire, path: string): Promise<void> {
    const { signal } = this.#turn;
    if (!signal.aborted)
      await new Promise(
        (resolve) => (response.once("close", resolve), signal.addEventListener("abort", resolve, { once: true })),
      );
    if (ending && signal.aborted) respondWith(response, ending(path));
  }

  async #mcp(call: { request: IncomingMessage; response: ServerResponse; body: unknown }): Promise<void> {
    if (!this.platformTools) return respondText(call.response, 503, "There is no workspace yet.");
    await handleMcp(this.platformTools, call);
  }

  async #call(incomingCall: GatewayRequest, body: JsonObject): Promise<void> {
    const { ctx, budget } = this.#deps;
    const { request, response, wire, call, path, query } = incomingCall;
    const { provider, providerCredentials } = ctx.assignment;
    const { apiKey = "", baseUrl = "" } = providerCredentials ?? {};
    const callId = this.#nextCallId();
    const abandoned = new AbortController();
    response.once("close", () => abandoned.abort(new Error("The agent program has closed the call.")));
    const { signal: turn } = this.#turn;
    const signal = AbortSignal.any([ctx.signal, this.#closed.signal, abandoned.signal, ...(wire.ending ? [turn] : [])]);
    const [limited, tooCostly] = await this.#reserve(body, wire, call, abandoned.signal);
    const failure =
      this.#failure ??
      budget.exceeded() ??
      (call.kind === "count" ? undefined : this.#steps.exceeded(call.kind === "step")) ??
      tooCostly;
    if (failure) return this.#fail(response, failure);
    await ctx.gate.whenOpen();
    const sent = maskRequest(wire.repaired?.(limited) ?? limited, (text) => ctx.mask(text));
    const headers = Object.fromEntries(
      FORWARDED_HEADERS.flatMap((name) =>
        request.headers[name] === undefined ? [] : [[name, String(request.headers[name])]],
      ),
    );
    const ending = (): GatewayEnding | undefined => (turn.aborted ? wire.ending?.(path) : undefined);
    const providerResponse = await this.#fetch(wire.url(baseUrl, path) + query, {
      method: "POST",
      headers: { ...headers, ...wire.key(apiKey) },
      body: JSON.stringify(sent),
      redirect: "error",
      signal,
    }).catch((error: unknown) => refusalIn(error));
    if (providerResponse instanceof Error) return this.#fail(response, callFailure(provider, providerResponse).failure);
    if (!providerResponse) return this.#unanswered(response, ending());
    if (!providerResponse.ok) return this.#refused(incomingCall, providerResponse);
    response.writeHead(providerResponse.status, returnedHeaders(providerResponse));
    const passed = new RelayedResponse();
    if (call.kind === "step") this.#answers.push(passed);
    if (call.kind === "step") this.#refusals.clear();
    if (call.kind !== "count") this.#steps.add(call.kind === "step");
    await passed.pass(providerResponse, response, { assertOpen: () => ctx.gate.assertOpen(), ending });
    ctx.modelCalled(provider, passed.isComplete ? "ok" : "interrupted");
    if (call.kind !== "count") await this.#report(callId, call, passed, sent);
  }

  /**
   * Makes the call. An execution has only one reservation, so under a cost limit calls are sequential: each starts
   * after the previous one was reported.
   */
  #sequenced(call: WireCall, make: () => Promise<void>): Promise<void> {
    if (call.kind === "count" || !this.#deps.ctx.platform.isCostLimited()) return make();
    const pendingCall = this.#limitedCalls.then(make);
    this.#limitedCalls = pendingCall.catch(() => undefined);
    return pendingCall;
  }

  #nextCallId(): string {
    const { executionId, attempt } = this.#deps.ctx.assignment;
    return `e${executionId}-a${attempt}-h${(this.#calls += 1)}`;
  }

  #unanswered(response: ServerResponse, ending: GatewayEnding | undefined): void {
    if (ending) return respondWith(response, ending);
    refuse(response, 502, "The model provider cannot be reached.");
  }

  /** Forwards an error to the program, which may handle it. Ends the run if the error is permanent. */
  async #refused({ response, call }: GatewayRequest, providerResponse: Response): Promise<void> {
    const { ctx } = this.#deps;
    const body = (await providerResponse.text().catch(() => "")).slice(0, REFUSAL_CHARACTERS_MAX);
    const isKey = [401, 402, 403].includes(providerResponse.status);
    const failure = call.kind === "step" || isKey ? this.#refusals.add(providerResponse.status, body) : undefined;
    ctx.modelCalled(ctx.assignment.provider, failure?.reason ?? "model_unavailable");
    if (failure) return this.#fail(response, failure);
    response.writeHead(providerResponse.status, returnedHeaders(providerResponse)).end(body);
  }

  /**
   * Reports the usage of a response. A response that was cut off is charged, too. One that the provider did not count
   * is reported without counts, so that it is known to be missing in sums and counts against limits.
   */
  async #report(
    callId: string,
    { modelId }: WireCall,
    { counted, characters, isComplete }: RelayedResponse,
    sent: JsonObject,
  ): Promise<void> {
    const { ctx, budget } = this.#deps;
    const used = isComplete ? { usage: counted } : interruptedUsage(counted, sent, characters);
    budget.spend(used.usage);
    await ctx.platform.reportUsage({ callId, modelId: modelId || ctx.assignment.modelId, ...used });
  }

  /**
   * Reserves the maximum cost of a call under a cost limit. Returns the request with a matching limit of its response,
   * and the reason if the run must end.
   */
  async #reserve(
    requestBody: JsonObject,
    wire: GatewayWire,
    { kind, modelId }: WireCall,
    abandoned: AbortSignal,
  ): Promise<[JsonObject, RunFailure | undefined]> {
    const { assignment, platform, signal } = this.#deps.ctx;
    if (!platform.isCostLimited() || kind === "count") return [requestBody, undefined];
    const wanted = wire.outputLimit(requestBody);
    const most = Math.min(typeof wanted === "number" ? wanted : LIMITED_OUTPUT_TOKENS, LIMITED_OUTPUT_TOKENS);
    const planned = { modelId: modelId || assignment.modelId, inputTokens: tokensIn(requestBody), outputTokens: most };
    const reservation = { reserveCost: (call: PlannedCall) => platform.reserveCost(call), timers: systemTimers };
    return [
      wire.limited(requestBody, most),
      await reservePlanned(planned, reservation, AbortSignal.any([signal, abandoned])),
    ];
  }

  #fail(response: ServerResponse, failure: RunFailure): void {
    if (!this.#failure) {
      this.#failure = failure;
      this.onFailure(failure);
    }
    refuse(response, 400, failure.message, failure.reason);
  }
}

const returnedHeaders = (providerResponse: Response): Record<string, string> =>
  Object.fromEntries(
    RETURNED_HEADERS.flatMap((name) =>
      providerResponse.headers.get(name) === null ? [] : [[name, providerResponse.headers.get(name)!]],
    ),
  );

async function readBody(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    if ((bytes += chunk.length) > BODY_BYTES_MAX) throw new Error("The request is too large.");
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

function respondWith(response: ServerResponse, { contentType, body }: GatewayEnding): void {
  response.writeHead(200, { "content-type": contentType }).end(body);
}

/** Responds with an error in the provider's format, so that the harness treats it as permanent. */
function refuse(response: ServerResponse, status: number, message: string, code?: string): void {
  response.writeHead(status, { "content-type": "application/json" }).end(
    JSON.stringify({
      type: "error",
      error: {
        type: status === 400 ? "invalid_request_error" : "api_error",
        code,
        message,
      },
    }),
  );
}

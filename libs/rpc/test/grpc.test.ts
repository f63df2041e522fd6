import {
  create,
  fromBinary,
  toBinary,
  type DescMessage,
  type DescMethodServerStreaming,
  type DescMethodUnary,
  type MessageInitShape,
  type MessageShape,
} from "@bufbuild/protobuf";
import { findTrailerError } from "@connectrpc/connect/protocol-grpc";
import { Client, credentials, Metadata, status, type ServiceError } from "@grpc/grpc-js";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { events, health, worker } from "@millwright/contracts";
import { DomainError, notFound } from "@millwright/errors";
import { Metrics } from "@millwright/telemetry";
import { aCaller, domainError, memoryLog } from "@millwright/testing";
import {
  callerOf,
  CallerSigner,
  CallerVerifier,
  fromConnectError,
  serveHttp2,
  type Http2Server,
} from "../src/index.ts";

const signer = await CallerSigner.create("gateway");
let server: Http2Server;
let client: Client;
let isReady = true;

beforeAll(async () => {
  const options = {
    service: "orchestrator",
    verifier: new CallerVerifier([signer.jwk]),
    log: memoryLog(),
    metrics: new Metrics(),
  };
  server = await serveHttp2(
    (router) => {
      router.service(events.EventFeedService, {
        read({ after, limit }, context) {
          if (limit === 1)
            throw new DomainError({
              kind: "conflict",
              reason: "log_busy",
              message: "Again, please.",
              retryable: true,
              metadata: { log: "l1" },
            });
          if (limit === 2) return new Promise(() => {}); // until the deadline
          context.responseHeader.set("x-answer", "header");
          return { logUid: callerOf(context).principal.uid, head: after };
        },
      });
      router.service(worker.WorkerService, {
        async *subscribe() {
          yield { workAvailable: true };
          throw notFound("session");
        },
      });
    },
    options,
    { port: 0, isReady: async () => isReady },
  );
  client = new Client(`127.0.0.1:${server.port}`, credentials.createInsecure());
});
afterAll(async () => {
  client.close();
  await server.close(0);
});

type Answer<O extends DescMessage> = { message: MessageShape<O>; header: Metadata };
const pathOf = (method: { parent: { typeName: string }; name: string }) => `/${method.parent.typeName}/${method.name}`;
const withCaller = async () => {
  const metadata = new Metadata();
  metadata.set("millwright-caller", await signer.sign(aCaller({ principal: { type: "user", uid: "u1" } })));
  return metadata;
};

/** A unary call by another vendor's plain gRPC client. */
function ask<I extends DescMessage, O extends DescMessage>(
  method: DescMethodUnary<I, O>,
  request: MessageInitShape<I>,
  metadata = new Metadata(),
  deadlineMs = 5_000,
): Promise<Answer<O>> {
  return new Promise((resolve, reject) => {
    let header = new Metadata();
    const encode = (message: MessageShape<I>) => Buffer.from(toBinary(method.input, message));
    const call = client.makeUnaryRequest(
      pathOf(method),
      encode,
      (bytes) => fromBinary(method.output, bytes),
      create(method.input, request),
      metadata,
      { deadline: Date.now() + deadlineMs },
      (error, message) => {
        if (error) reject(error);
        else resolve({ message: message!, header });
      },
    );
    call.on("metadata", (received) => (header = received));
  });
}

function stream<I extends DescMessage, O extends DescMessage>(
  method: DescMethodServerStreaming<I, O>,
  request: MessageInitShape<I>,
  metadata = new Metadata(),
) {
  return client.makeServerStreamRequest(
    pathOf(method),
    (message: MessageShape<I>) => Buffer.from(toBinary(method.input, message)),
    (bytes) => fromBinary(method.output, bytes),
    create(method.input, request),
    metadata,
  );
}

/** How our own clients interpret the trailers. */
const errorOf = ({ metadata }: ServiceError): DomainError => {
  const trailer = new Headers(
    Object.entries(metadata.getMap()).map(([name, value]): [string, string] => [
      name,
      Buffer.isBuffer(value) ? value.toString("base64") : value,
    ]),
  );
  trailer.set("grpc-status", String(status.FAILED_PRECONDITION)); // grpc-js takes it out of the trailers
  return fromConnectError(findTrailerError(trailer));
};

test("a plain gRPC client gets a response, with the caller in its metadata, int64 and response headers", async () => {
  const { message, header } = await ask(
    events.EventFeedService.method.read,
    { after: 9_007_199_254_740_993n },
    await withCaller(),
  );
  expect(message).toMatchObject({ logUid: "u1", head: 9_007_199_254_740_993n });
  expect(header.get("x-answer")).toEqual(["header"]);
});

test("a call without a caller is rejected", async () => {
  await expect(ask(events.EventFeedService.method.read, {})).rejects.toMatchObject({ code: status.UNAUTHENTICATED });
});

test("its deadline is enforced", async () => {
  await expect(ask(events.EventFeedService.method.read, { limit: 2 }, await withCaller(), 50)).rejects.toMatchObject({
    code: status.DEADLINE_EXCEEDED,
  });
});

test("it gets the complete error in the status details", async () => {
  const error = (await ask(events.EventFeedService.method.read, { limit: 1 }, await withCaller()).catch(
    (thrown: unknown) => thrown,
  )) as ServiceError;
  expect(error).toMatchObject({ code: status.FAILED_PRECONDITION, details: expect.stringContaining("Again") });
  expect(errorOf(error)).toEqual(domainError({ kind: "conflict", reason: "log_busy", retryable: true }));
  expect(errorOf(error).metadata).toEqual({ log: "l1" });
});

test("it may read a stream, with the error that ends it", async () => {
  const seen: boolean[] = [];
  const messages = stream(worker.WorkerService.method.subscribe, {}, await withCaller());
  const error = await new Promise<ServiceError>((resolve) => {
    messages.on("data", (message: worker.SubscribeResponse) => seen.push(message.workAvailable));
    messages.on("error", (thrown: ServiceError) => resolve(thrown));
  });
  expect(seen).toEqual([true]);
  expect(error.code).toBe(status.NOT_FOUND);
});

test("gRPC's health service reports readiness without authentication", async () => {
  const { check, watch } = health.Health.method;
  const statusOf = async (service: string) => (await ask(check, { service })).message.status;
  const { SERVING, NOT_SERVING, SERVICE_UNKNOWN } = health.HealthCheckResponse_ServingStatus;
  expect([await statusOf(""), await statusOf("millwright.events.v1.EventFeedService")]).toEqual([SERVING, SERVING]);
  await expect(statusOf("no.such.Service")).rejects.toMatchObject({ code: status.NOT_FOUND });
  const firstOf = (service: string) =>
    new Promise((resolve) => {
      const messages = stream(watch, { service });
      messages.on("error", () => {}); // our own leaving
      messages.once("data", (message: health.HealthCheckResponse) => (messages.cancel(), resolve(message.status)));
    });
  isReady = false;
  expect([await statusOf(""), await firstOf(""), await firstOf("no.such.Service")]).toEqual([
    NOT_SERVING,
    NOT_SERVING,
    SERVICE_UNKNOWN,
  ]);
});

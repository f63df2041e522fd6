import { afterAll, beforeAll, beforeEach, describe, expect, test } from "@jest/globals";
import { newUid } from "@millwright/ids";
import { call } from "@millwright/rpc";
import { aCaller, domainError } from "@millwright/testing";
import { aRun, MEMBER, OWNER, startWorld, TEAM, type World } from "./setup.ts";

let w: World;
let factoryUid: string;
const agentUid = newUid();
beforeAll(async () => {
  w = await startWorld();
});
beforeEach(async () => {
  await w.reset();
  factoryUid = (await w.aFactory()).uid;
  w.identity.foremen.set(factoryUid, { agentUid, agentName: "lead" });
  w.orchestrator.beforeAnswer = () => {};
});
afterAll(() => w.stop());

type Request = {
  factoryUid?: string;
  prompt?: string;
  title?: string;
  ticketRef?: string;
  ticketUrl?: string;
  idempotencyKey?: string;
};
const dispatch = (request: Request = {}, caller = MEMBER) =>
  w.factories.dispatchRun({ factoryUid, prompt: "Mend the tests", ...request }, call(caller));
const lastRequest = () => w.orchestrator.runs.at(-1)?.request;

describe("a dispatch", () => {
  test("asks for a team run of the foreman that its event marks as dispatched", async () => {
    const answer = await dispatch({
      title: " Mend ",
      ticketRef: "linear:ABC-12",
      ticketUrl: "https://linear.test/ABC-12",
    });
    expect(answer).toMatchObject({
      runUid: w.orchestrator.runs.at(-1)?.uid,
      foremanAgent: "lead",
      ticketRef: "linear:ABC-12",
    });
    expect(lastRequest()).toMatchObject({
      prompt: "Mend the tests",
      title: "Mend",
      ownerType: "team",
      ownerUid: TEAM,
      agentUid,
      factoryUid,
      origin: "dispatch",
      metadata: { ticket_source: "linear", ticket_id: "ABC-12", ticket_url: "https://linear.test/ABC-12" },
    });
  });

  test("without a ticket generates one; a ticket URL is stored beside it", async () => {
    const { ticketRef } = await dispatch({ ticketUrl: "https://t.test/1" });
    expect(ticketRef).toMatch(/^adhoc:.+/);
    expect(lastRequest()?.metadata).toEqual({
      ticket_source: "adhoc",
      ticket_id: ticketRef.slice("adhoc:".length),
      ticket_url: "https://t.test/1",
    });
    expect(lastRequest()?.title).toBeUndefined();
  });

  test.each([
    ["an empty prompt", { prompt: " \n" }, "prompt_required"],
    ["half a ticket", { ticketRef: "linear:" }, "invalid_ticket_ref"],
    ["an empty ticket", { ticketRef: "" }, "invalid_ticket_ref"],
    ["a prompt with NUL", { prompt: "a\0" }, "invalid_text"],
  ])("refuses %s and starts nothing", async (_what, request, reason) => {
    const before = w.orchestrator.runs.length;
    await expect(dispatch(request)).rejects.toEqual(domainError({ kind: "invalid_argument", reason }));
    expect(w.orchestrator.runs).toHaveLength(before);
  });

  test("to a factory without foreman is a conflict that must not be retried", async () => {
    w.identity.foremen.delete(factoryUid);
    await expect(dispatch()).rejects.toEqual(
      domainError({ kind: "conflict", reason: "foreman_missing", retryable: false }),
    );
  });

  test("from a run reaches the run's own factory only", async () => {
    const own = w.orchestrator.created({ teamUid: TEAM, factoryUid });
    const elsewhere = w.orchestrator.created({ teamUid: TEAM, factoryUid: newUid() });
    expect((await dispatch({}, aRun(own.uid))).foremanAgent).toBe("lead");
    await expect(dispatch({}, aRun(elsewhere.uid))).rejects.toEqual(domainError({ reason: "factory_not_found" }));
    await expect(dispatch({}, aRun(newUid()))).rejects.toEqual(domainError({ reason: "factory_not_found" }));
  });
});

describe("one Idempotency-Key", () => {
  const runsNow = () => w.orchestrator.runs.filter((run) => run.factoryUid === factoryUid).length;

  test("starts one run for any number of repeated and concurrent requests", async () => {
    const answers = await Promise.all(Array.from({ length: 10 }, () => dispatch({ idempotencyKey: "k" })));
    for (const answer of answers) expect(answer).toEqual(answers[0]);
    expect(runsNow()).toBe(1);
  });

  test("is one run when the first answer was lost, and the foreman has changed since", async () => {
    w.orchestrator.beforeAnswer = () => {
      throw new Error("the connection broke");
    };
    await expect(dispatch({ idempotencyKey: "k" })).rejects.toEqual(domainError({ kind: "internal" }));
    w.orchestrator.beforeAnswer = () => {};
    w.identity.foremen.set(factoryUid, { agentUid: newUid(), agentName: "new lead" });
    expect((await dispatch({ idempotencyKey: "k" })).foremanAgent).toBe("lead");
    w.identity.foremen.delete(factoryUid);
    expect((await dispatch({ idempotencyKey: "k" })).foremanAgent).toBe("lead");
    expect(runsNow()).toBe(1);
  });

  test("with another body is a conflict; from another principal or for another factory another request", async () => {
    const first = await dispatch({ idempotencyKey: "k" });
    await expect(dispatch({ idempotencyKey: "k", prompt: "Other" })).rejects.toEqual(
      domainError({ kind: "conflict", reason: "idempotency_mismatch", retryable: false }),
    );
    const other = (await w.aFactory()).uid;
    w.identity.foremen.set(other, { agentUid, agentName: "lead" });
    const answers = [
      await dispatch({ idempotencyKey: "k", factoryUid: other }),
      await dispatch({ idempotencyKey: "k" }, aCaller({ teams: OWNER.teams })),
      await dispatch({ idempotencyKey: "" }),
      await dispatch({ idempotencyKey: "" }),
    ];
    expect(new Set([first, ...answers].map(({ runUid }) => runUid)).size).toBe(5);
  });
});

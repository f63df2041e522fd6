import { once } from "node:events";
import { createServer, type AddressInfo } from "node:net";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { fakeApi } from "./fake-api.ts";

const { seen, answers, millwright, inColour, url } = fakeApi();

const F1 = "0198a202-0000-7000-8000-00000000000f";

test("--json prints the record itself", async () => {
  const run = { run_id: "r1", state: "QUEUED" };
  answers["POST /api/v1/agent/runs"] = { status: 200, body: run };
  const result = await millwright("run", "create", "hello", "--json");
  expect(result).toMatchObject({ code: 0, err: "" });
  expect(JSON.parse(result.out)).toEqual(run);
  expect(seen).toEqual([
    { method: "POST", path: "/api/v1/agent/runs", key: "Bearer mw_test", body: { prompt: "hello", config: {} } },
  ]);
});

test("factory repair applies the definition again and prints the version", async () => {
  answers["GET /api/v1/factory?search=f1&limit=100"] = {
    status: 200,
    body: { factories: [{ uid: "f1", name: "f1", alias: null }] },
  };
  answers["POST /api/v1/factory/f1/source/apply"] = {
    status: 200,
    body: { source: { state: "APPLIED", active_version: 4 }, plan: [] },
  };
  const { code, out } = await millwright("factory", "repair", "--factory", "f1");
  expect([code, out.split("\n").at(-1)]).toEqual([0, "version 4 is applied."]);
  expect(seen.at(-1)).toMatchObject({
    method: "POST",
    path: "/api/v1/factory/f1/source/apply",
    body: { repair: true },
  });
});

test.each([
  [401, 3],
  [403, 3],
  [404, 4],
  [400, 2],
  [409, 1],
  [500, 1],
])("a response of %i gives exit code %i", async (status, code) => {
  answers["GET /api/v1/agent/runs/r1"] = {
    status,
    body: { status, title: "Refused", detail: "because", reason: "some_reason" },
  };
  const result = await millwright("run", "get", "r1");
  expect(result.code).toBe(code);
  expect(result.err).toBe("because (some_reason)");
});

test.each([
  [["run", "get"]],
  [["run", "get", "a", "b"]],
  [["run", "list", "--no-such-option"]],
  [["no-such-command"]],
  [["run", "no-such-verb", "--help"]],
  [["key", "revoke", "%2e%2e"]],
  [["secret", "delete", ".."]],
  [["run", "create"]],
])("%j is wrong usage, sends nothing and exits 2", async (argv) => {
  expect((await millwright(...argv)).code).toBe(2);
  expect(seen).toEqual([]);
});

test.each([
  [["login", "http://127.0.0.1:1", "mw_0123456789abcdef", "extra"], "login takes URL API_KEY."],
  [["run", "list", "--apikey=mw_0123456789abcdef"], "Unknown option '--apikey'"],
  [["--apikey=mw_0123456789abcdef", "run", "list"], "Unknown option '--apikey'"],
])("%j is wrong usage with a message that does not repeat the key", async (argv, message) => {
  const { code, err } = await millwright(...argv);
  expect([code, err]).toEqual([2, expect.stringContaining(message)]);
  expect(err).not.toContain("mw_");
});

describe("help", () => {
  test.each([[[]], [["--help"]], [["-h"]], [["help"]]])("%j lists every command and exits 0", async (argv) => {
    const { code, out } = await millwright(...argv);
    expect([code, out]).toEqual([0, expect.stringMatching(/login URL API_KEY[^]*run create[^]*worker start/)]);
  });
  test.each([[["run", "--help"]], [["help", "run"]]])("%j lists the commands of one subject", async (argv) => {
    const { code, out } = await millwright(...argv);
    expect([code, out]).toEqual([0, expect.stringContaining("run create [PROMPT]")]);
    expect(out).not.toContain("webhook");
  });
  test("of a command shows its options with their values", async () => {
    const { code, out } = await millwright("run", "create", "--help");
    expect([code, out]).toEqual([0, expect.stringContaining("[--file FILE] [--title TITLE]")]);
    expect(out).toContain("[--attach ATTACH]... [--watch] [--json]");
    expect((await millwright("run", "list", "--help")).out).toContain("STATE: QUEUED, PENDING, CLAIMED");
    expect((await millwright("task", "move", "--help")).out).toContain("STAGE: TRIAGE, SPEC");
  });
  test.each([
    [["rnu"], "Unknown command rnu. millwright --help lists all commands."],
    [["run"], "run needs a second word."],
    [["run", "start"], "Unknown command run start."],
    [["help", "rnu"], "Unknown command rnu. millwright --help lists all commands."],
  ])("%j is wrong usage with a short message", async (argv, message) => {
    const { code, out, err } = await millwright(...argv);
    expect([code, out, err.split("\n")[0]]).toEqual([2, "", message]);
    expect(err).not.toContain("webhook");
  });
  test("--version prints one", async () =>
    expect(await millwright("--version")).toMatchObject({ code: 0, out: expect.stringMatching(/^\d+\.\d+\.\d+$/) }));
});

test("global options may precede the words of a command", async () => {
  answers["GET /api/v1/agent/runs/r1"] = {
    status: 200,
    body: { run_id: "r1", state: "FAILED", title: "t", created_at: "" },
  };
  expect(JSON.parse((await millwright("--api-key", "mw_other", "--json", "run", "get", "r1")).out)).toMatchObject({
    run_id: "r1",
  });
  expect(seen).toMatchObject([{ key: "Bearer mw_other" }]);
});

test.each([
  ["run", "get", "../../whoami"],
  ["webhook", "delete", "w1?x=1"],
  ["key", "revoke", ""],
  ["key", "revoke", ".."],
  ["automation", "decisions", "a/b"],
  ["user", "list", "--team", "../x"],
])("%s %s %s leads to no other place of the API", async (...argv) => {
  expect((await millwright(...argv)).code).toBe(2);
  expect(seen).toEqual([]);
});

test("distinguishes a platform that does not respond from a wrong URL", async () => {
  const silent = createServer().listen(0, "127.0.0.1");
  await once(silent, "listening");
  const { port } = silent.address() as AddressInfo;
  await new Promise((resolve) => silent.close(resolve));
  expect(await millwright("run", "list", "--url", `http://127.0.0.1:${port}`)).toMatchObject({
    code: 1,
    err: expect.stringMatching(/^The platform does not respond.*ECONNREFUSED/),
  });
  expect(await millwright("run", "list", "--url", "nonsense")).toMatchObject({
    code: 2,
    err: expect.stringContaining("nonsense is not the URL of a platform"),
  });
  expect(await millwright("login", "nonsense", "key")).toMatchObject({
    code: 2,
    err: expect.stringContaining("nonsense is not the URL of a platform"),
  });
});

describe("the factory of a command", () => {
  const factories = (...names: string[]) => ({
    status: 200,
    body: { factories: names.map((name) => ({ uid: `uid-${name}`, name, alias: `${name}-alias` })) },
  });
  beforeEach(() => {
    for (const uid of [F1, "uid-shop"])
      answers[`GET /api/v1/factory/${uid}/tasks`] = { status: 200, body: { tasks: [] } };
  });
  test("is named by uid, name or alias, or is the only one", async () => {
    answers["GET /api/v1/factory?limit=100"] = factories("shop");
    answers["GET /api/v1/factory?search=shop&limit=100"] = factories("shop", "shopping");
    answers["GET /api/v1/factory?search=shop-alias&limit=100"] = factories("shop");
    for (const named of [[], ["--factory", "shop"], ["--factory", "shop-alias"], ["--factory", F1]])
      expect((await millwright("task", "list", ...named)).code).toBe(0);
    expect(seen.map(({ path }) => path).filter((path) => path.endsWith("/tasks"))).toEqual([
      ...Array(3).fill("/api/v1/factory/uid-shop/tasks"),
      `/api/v1/factory/${F1}/tasks`,
    ]);
  });
  test("is required if there are several, and an error if there is none", async () => {
    answers["GET /api/v1/factory?limit=100"] = factories("shop", "mill");
    answers["GET /api/v1/factory?search=none&limit=100"] = factories("none-of-these");
    expect(await millwright("task", "list")).toMatchObject({
      code: 2,
      err: expect.stringContaining("There are several factories"),
    });
    expect(await millwright("task", "list", "--factory", "none")).toMatchObject({
      code: 4,
      err: "There is no factory none.",
    });
  });
});

test("diagnostics of a rejected definition are listed with their positions", async () => {
  answers["POST /api/v1/factory/f/source/apply"] = { status: 400, body: {} };
  answers["GET /api/v1/factory?search=f&limit=100"] = {
    status: 200,
    body: { factories: [{ uid: "f", name: "f", alias: null }] },
  };
  answers["GET /api/v1/factory/f/source"] = {
    status: 200,
    body: { kind: "files", repository_url: null, branch: null },
  };
  answers["PUT /api/v1/factory/f/source"] = {
    status: 400,
    body: {
      status: 400,
      title: "Invalid",
      diagnostics: [{ path: "factory.yaml", line: 2, column: 3, code: "FF_UNKNOWN_FIELD", message: "no such key" }],
    },
  };
  const result = await millwright(
    "factory",
    "apply",
    new URL("../../../examples/first-factory", import.meta.url).pathname,
    "--factory",
    "f",
  );
  expect(result.code).toBe(1);
  expect(result.err).toContain("factory.yaml:2:3 FF_UNKNOWN_FIELD no such key");
});

test("applying a directory to a factory that git defines is refused without --replace-source", async () => {
  answers["GET /api/v1/factory/f1/source"] = {
    status: 200,
    body: { kind: "git", repository_url: "https://host/team/factory.git", branch: "main" },
  };
  answers["PUT /api/v1/factory/f1/source"] = { status: 200, body: {} };
  answers["POST /api/v1/factory/f1/source/apply"] = {
    status: 200,
    body: { source: { state: "APPLIED", active_version: 2 }, plan: [] },
  };
  answers["GET /api/v1/factory?search=f1&limit=100"] = {
    status: 200,
    body: { factories: [{ uid: "f1", name: "f1", alias: null }] },
  };
  const directory = new URL("../../../examples/first-factory", import.meta.url).pathname;
  const refused = await millwright("factory", "apply", directory, "--factory", "f1");
  expect([refused.code, refused.err]).toEqual([
    2,
    expect.stringContaining(
      "comes from https://host/team/factory.git (branch main). Commit the change there, or add --replace-source",
    ),
  ]);
  expect(seen.filter(({ method }) => method !== "GET")).toEqual([]);
  expect((await millwright("factory", "apply", directory, "--factory", "f1", "--replace-source")).code).toBe(0);
  expect(seen.filter(({ method }) => method !== "GET").map(({ method, path }) => `${method} ${path}`)).toEqual([
    "PUT /api/v1/factory/f1/source",
    "POST /api/v1/factory/f1/source/apply",
  ]);
});

describe("files", () => {
  let directory: string;
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), "millwright-cli-"));
    await writeFile(join(directory, "shot.png"), "png");
  });
  afterEach(() => rm(directory, { recursive: true }));

  test("are sent with a new run", async () => {
    answers["POST /api/v1/agent/runs"] = { status: 200, body: { run_id: "r1", state: "QUEUED" } };
    expect((await millwright("run", "create", "look", "--attach", join(directory, "shot.png"))).code).toBe(0);
    expect(seen[0]!.body).toEqual({
      prompt: "look",
      config: {},
      attachments: [{ file_name: "shot.png", mime_type: "image/png", data: Buffer.from("png").toString("base64") }],
    });
  });

  test("are prepared, uploaded and named by a follow-up", async () => {
    const target = { url: `${url()}/blobs/1?sig=s`, method: "PUT", headers: { "content-type": "image/png" } };
    answers["POST /api/v1/agent/runs/r1/attachments/prepare"] = {
      status: 200,
      body: { attachments: [{ attachment_id: "a1", upload_target: target }] },
    };
    answers["PUT /blobs/1?sig=s"] = { status: 200 };
    answers["POST /api/v1/agent/runs/r1/followups"] = { status: 200, body: { outcome: "live_session" } };
    expect(await millwright("run", "follow-up", "r1", "look", "--attach", join(directory, "shot.png"))).toMatchObject({
      code: 0,
      out: "accepted: live_session",
    });
    expect(seen.map(({ method, path, key, body }) => [method, path, key, body])).toEqual([
      [
        "POST",
        "/api/v1/agent/runs/r1/attachments/prepare",
        "Bearer mw_test",
        { files: [{ filename: "shot.png", mime_type: "image/png" }] },
      ],
      ["PUT", "/blobs/1?sig=s", undefined, "png"],
      [
        "POST",
        "/api/v1/agent/runs/r1/followups",
        "Bearer mw_test",
        { message: "look", attachments: [{ attachment_id: "a1" }] },
      ],
    ]);
    answers["PUT /blobs/1?sig=s"] = { status: 413 };
    expect(await millwright("run", "follow-up", "r1", "--attach", join(directory, "shot.png"))).toMatchObject({
      code: 1,
      err: expect.stringContaining("HTTP 413"),
    });
  });

  test("that cannot be read are wrong usage, and nothing is sent", async () => {
    const none = join(directory, "none");
    for (const argv of [
      ["run", "create", "look", "--attach"],
      ["run", "follow-up", "r1", "look", "--attach"],
      ["run", "create", "--file"],
      ["schedule", "create", "s", "0 3 * * *", "--file"],
    ]) {
      expect(await millwright(...argv, none)).toMatchObject({
        code: 2,
        err: expect.stringContaining(`Cannot read ${none}: there is no such file.`),
      });
    }
    expect(await millwright("validate", none)).toMatchObject({
      code: 2,
      err: expect.stringContaining("no such directory"),
    });
    expect(await millwright("automation", "create", join(directory, "shot.png"), "--factory", F1)).toMatchObject({
      code: 2,
      err: expect.stringContaining("shot.png is not JSON: "),
    });
    expect(seen).toEqual([]);
  });
});

test("a team's events are listed in pages, and watched from a given sequence", async () => {
  const event = (sequence: number) => ({
    sequence,
    uid: `u${sequence}`,
    event_type: "run_succeeded",
    run_id: "r1",
    occurred_at: "2026-01-01T00:00:00.000Z",
  });
  answers["GET /api/v1/agent/events?since=3&run_ids=r1&run_ids=r2&limit=500"] = {
    status: 200,
    body: { events: [event(4)], page_info: { has_next_page: true, next_cursor: "4" } },
  };
  answers["GET /api/v1/agent/events?since=3&run_ids=r1&run_ids=r2&limit=500&cursor=4"] = {
    status: 200,
    body: { events: [event(7)], page_info: { has_next_page: false } },
  };
  expect(
    JSON.parse((await millwright("event", "list", "--since", "3", "--run", "r1", "--run", "r2", "--json")).out),
  ).toEqual([event(4), event(7)]);
  answers["GET /api/v1/agent/events?since=3&run_ids=r1"] = {
    status: 200,
    type: "text/event-stream",
    text: `id: 3\nevent: open\ndata: {"sequence":3}\n\nid: 4\nevent: run_succeeded\ndata: ${JSON.stringify(event(4))}\n\nevent: end\ndata: {}\n\n`,
  };
  expect((await millwright("event", "watch", "--since", "3", "--run", "r1")).out).toBe(
    "4  2026-01-01T00:00:00.000Z  r1  run_succeeded",
  );
});

test("the commands of a run are shown with their output, and failed ones with their exit status", async () => {
  answers["GET /api/v1/agent/runs/r1"] = { status: 200, body: { conversation_id: "c1" } };
  const block = { command: "ls", output: "a\n", exit_code: 0, state: "completed" };
  answers["GET /api/v1/agent/conversations/c1/block-snapshot"] = {
    status: 200,
    body: {
      blocks: [
        block,
        { ...block, command: "false", output: "", exit_code: 1, state: "failed" },
        { ...block, command: "top", output: "", exit_code: null, state: "running" },
      ],
    },
  };
  expect((await millwright("run", "commands", "r1")).out).toBe("$ ls\na\n$ false\n[1]\n$ top\n[running]\n");
});

test("shows why a run is queued", async () => {
  answers["GET /api/v1/agent/runs/r1"] = {
    status: 200,
    body: { run_id: "r1", state: "QUEUED", title: "Fix it", created_at: "" },
  };
  answers["GET /api/v1/agent/runs/r1/queue"] = {
    status: 200,
    body: { state: "QUEUED", reason: "no_workers", message: "No worker is connected." },
  };
  expect((await millwright("run", "get", "r1")).out).toBe("Fix it\nQUEUED: No worker is connected.");
});

test("creates a key for every team of its owner only", async () => {
  answers["POST /api/v1/team/t1/keys"] = { status: 201, body: { key: { uid: "k1" }, api_key: "mw_new" } };
  expect(await millwright("key", "create", "mine", "--all-teams", "--team", "t1")).toMatchObject({
    code: 0,
    out: "key k1, shown once: mw_new",
  });
  expect(seen.at(-1)!.body).toEqual({ name: "mine", kind: "api", all_teams: true });
  expect((await millwright("key", "create", "hers", "--user", "ada@example.com", "--team", "t1")).code).toBe(2);
});

test("people are added with their first key, or invited, and accept", async () => {
  answers["POST /api/v1/team/t1/members"] = { status: 201, body: { uid: "u1", role: "viewer", api_key: "mw_first" } };
  expect((await millwright("user", "add", "new@example.com", "--role", "viewer", "--team", "t1")).out).toContain(
    "shown once: mw_first",
  );
  const invitation = {
    uid: "i1",
    team: { uid: "t1", name: "Red" },
    email: "ada@example.com",
    role: "admin",
    invited_by: "bob@example.com",
    expires_at: "T",
  };
  answers["POST /api/v1/team/t1/invitations"] = { status: 201, body: invitation };
  expect((await millwright("invitation", "create", "ada@example.com", "--role", "admin", "--team", "t1")).out).toBe(
    "ada@example.com is invited as admin until T: invitation i1",
  );
  expect(seen.at(-1)!.body).toEqual({ email: "ada@example.com", role: "admin" });
  for (const path of ["/invitations", "/team/t1/invitations"])
    answers[`GET /api/v1${path}`] = { status: 200, body: { invitations: [invitation] } };
  for (const where of [["--mine"], ["--team", "t1"]])
    expect((await millwright("invitation", "list", ...where)).out).toMatch(
      /i1 +Red +ada@example.com +admin +bob@example.com/,
    );
  answers["POST /api/v1/invitations/i1/accept"] = {
    status: 200,
    body: { team: invitation.team, member: { role: "admin" } },
  };
  expect((await millwright("invitation", "accept", "i1")).out).toMatch(/^You are now admin of team t1 \(Red\)\./);
  answers["DELETE /api/v1/invitations/i1"] = { status: 204, body: "" };
  answers["DELETE /api/v1/team/t1/invitations/i1"] = { status: 204, body: "" };
  expect([
    (await millwright("invitation", "decline", "i1")).out,
    (await millwright("invitation", "revoke", "i1", "--team", "t1")).out,
  ]).toEqual(["invitation i1 is declined.", "invitation i1 is revoked."]);
});

test("a run is shown with what its model calls used", async () => {
  const run = { run_id: "r1", state: "SUCCEEDED", title: "Fix it", created_at: "", session_link: "https://x/runs/r1" };
  const shown = async (usage?: object) => {
    answers["GET /api/v1/agent/runs/r1"] = { status: 200, body: { ...run, ...(usage && { request_usage: usage }) } };
    return (await millwright("run", "get", "r1")).out.split("\n");
  };
  expect(await shown({ total_tokens: 2100, inference_cost_usd: 0.0075 })).toEqual([
    "Fix it",
    "SUCCEEDED",
    "2100 tokens, $0.007500",
    "https://x/runs/r1",
  ]);
  expect(await shown({ total_tokens: 2100 })).toContain("2100 tokens");
  for (const none of [undefined, { total_tokens: 0, inference_cost_usd: 0 }])
    expect(await shown(none)).toEqual(["Fix it", "SUCCEEDED", "https://x/runs/r1"]);
});

describe("watching a run", () => {
  const AT = "2026-01-01T00:00:01.000Z";
  const command = {
    name: "run_command",
    state: "completed",
    input: { command: "ls" },
    output: { exit_code: 0, output: "a" },
  };
  const stream = (...events: { kind: string; occurred_at?: string; payload?: object }[]): string =>
    events
      .map((event, index) => ({ seq: index + 1, occurred_at: AT, ...event }))
      .map((event) => `id: ${event.seq}\nevent: ${event.kind}\ndata: ${JSON.stringify(event)}\n\n`)
      .join("");
  const answer = (text: string, run: object) => {
    answers["GET /api/v1/agent/runs/r1/events"] = { status: 200, type: "text/event-stream", text };
    const body = {
      run_id: "r1",
      state: "FAILED",
      title: "t",
      created_at: "",
      session_link: "https://x/runs/r1",
      ...run,
    };
    answers["GET /api/v1/agent/runs/r1"] = { status: 200, body };
  };

  test("prints its id and its link first, then what happened; the exit code is that of its end", async () => {
    answer(`${stream({ kind: "run_created" }, { kind: "tool_end", payload: command })}event: end\ndata: {}\n\n`, {});
    answers["POST /api/v1/agent/runs"] = { status: 200, body: { run_id: "r1", state: "QUEUED" } };
    for (const argv of [
      ["run", "watch", "r1"],
      ["run", "create", "hello", "--watch"],
    ]) {
      const { code, out } = await millwright(...argv);
      expect([code, out.split("\n")]).toEqual([1, ["run r1", "https://x/runs/r1", "· queued", "✓ $ ls", "    a"]]);
    }
  });

  test("returns at its end, not at that of an earlier execution, and mentions an open debug window", async () => {
    const finished = (occurred_at: string) => ({
      kind: "run_finished",
      occurred_at,
      payload: { state: "FAILED", message: "No." },
    });
    // The stream of a run with an open debug window has no end: what follows is never read.
    const later = { kind: "message", payload: { role: "assistant", text: "never read" } };
    const status = { message: "No.", session_debug_until: "2026-01-01T00:20:00.000Z" };
    const events = stream(finished("2026-01-01T00:00:00.000Z"), { kind: "run_created" }, finished(AT), later);
    answer(events, { finished_at: "2026-01-01T00:00:00.999Z", status_message: status });
    const { code, out } = await millwright("run", "watch", "r1");
    expect(code).toBe(1);
    expect(out.split("\n").slice(2)).toEqual([
      "✗ failed: No.",
      "· queued",
      "✗ failed: No.",
      "! debug window open until 2026-01-01T00:20:00.000Z: millwright run follow-up r1 MESSAGE sends MESSAGE to the retained workspace",
    ]);
  });

  test("prints its events as JSON Lines with --json", async () => {
    answer(`${stream({ kind: "run_created" })}event: end\ndata: {}\n\n`, { state: "SUCCEEDED" });
    const { code, out } = await millwright("run", "watch", "r1", "--json");
    expect([code, JSON.parse(out)]).toEqual([0, { seq: 1, occurred_at: AT, kind: "run_created" }]);
  });
});

describe("what the platform sends is printed without control sequences", () => {
  const EVIL = "\u001b]0;owned\u0007a\u001b[2J\u009b31m\u202e\rb";
  // oxlint-disable-next-line no-control-regex -- these must be absent
  const CONTROLS = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202e]/;
  test.each<[string[], string, object]>([
    [
      ["run", "list"],
      "GET /api/v1/agent/runs",
      { runs: [{ run_id: "r1", state: "FAILED", created_at: "now", title: `${EVIL}\nforged row` }] },
    ],
    [
      ["run", "get", "r1"],
      "GET /api/v1/agent/runs/r1",
      { run_id: "r1", state: "FAILED", title: EVIL, status_message: { message: EVIL } },
    ],
    [
      ["task", "get", "t1", "--factory", F1],
      `GET /api/v1/factory/${F1}/tasks/t1`,
      { title: EVIL, stage: "TRIAGE", outputs: [{ artifact_type: "FILE", data: { filename: EVIL } }] },
    ],
    [
      ["schedule", "get", "s1"],
      "GET /api/v1/agent/schedules/s1",
      { id: "s1", name: EVIL, cron_schedule: "* * * * *", prompt: EVIL, history: {} },
    ],
  ])("%j", async (argv, request, body) => {
    answers[request] = { status: 200, body };
    const { code, out } = await millwright(...argv);
    expect([code, out]).toEqual([0, expect.stringContaining("ab")]);
    expect(out).not.toMatch(CONTROLS);
    const json = (await millwright(...argv, "--json")).out;
    expect(json).not.toMatch(CONTROLS);
    expect(JSON.stringify(JSON.parse(json))).toContain("\\u001b]0;owned"); // the value is the same
  });

  test("a row of a table stays one line", async () => {
    answers["GET /api/v1/agent/runs"] = {
      status: 200,
      body: { runs: [{ run_id: "r1", state: "FAILED", created_at: "now", title: "a\nr2  SUCCEEDED" }] },
    };
    expect((await millwright("run", "list")).out.split("\n")).toHaveLength(2);
  });

  test("errors and their diagnostics", async () => {
    const diagnostics = [{ path: EVIL, line: 1, column: 1, code: EVIL, message: EVIL }];
    answers["GET /api/v1/agent/runs/r1"] = { status: 404, body: { status: 404, detail: EVIL, diagnostics } };
    const { err } = await millwright("run", "get", "r1");
    expect(err).toContain("ab");
    expect(err).not.toMatch(CONTROLS);
  });

  test("commands, transcripts and events; our own colours stay", async () => {
    const block = { command: EVIL, output: `${EVIL}\n`, exit_code: 0, state: "completed" };
    answers["GET /api/v1/agent/runs/r1"] = {
      status: 200,
      body: { run_id: "r1", conversation_id: "c1", state: "FAILED", session_link: EVIL },
    };
    answers["GET /api/v1/agent/conversations/c1/block-snapshot"] = { status: 200, body: { blocks: [block] } };
    answers["GET /api/v1/agent/runs/r1/transcript"] = {
      status: 200,
      text: `${JSON.stringify({ text: EVIL })}\n{"text":"\u009b31m\u202e"}\n`,
    };
    const event = { seq: 1, kind: "message", occurred_at: "", payload: { role: "assistant", text: EVIL } };
    const text = `id: 1\nevent: message\ndata: ${JSON.stringify(event)}\n\nevent: end\ndata: {}\n\n`;
    answers["GET /api/v1/agent/runs/r1/events"] = { status: 200, type: "text/event-stream", text };
    for (const words of ["commands r1", "transcript r1", "watch r1", "watch r1 --json"]) {
      expect((await millwright("run", ...words.split(" "))).out).not.toMatch(CONTROLS);
    }
    expect((await millwright("run", "transcript", "r1")).out.split("\n").map((line) => JSON.parse(line).text)).toEqual([
      EVIL,
      "\u009b31m\u202e",
    ]);
    expect((await inColour("run", "commands", "r1")).out).toBe("\u001b[1m$ ab\u001b[0m\nab\n");
  });
});

describe("rejected values are wrong usage", () => {
  test.each([
    [["run", "list", "--state", "DONE"], "--state must be one of QUEUED, PENDING"],
    [["run", "list", "--state", "QUEUED,DONE"], 'FAILED, BLOCKED, ERROR, CANCELLED (got "DONE").'],
    [["task", "move", "t1", "DONE"], "STAGE must be one of TRIAGE, SPEC"],
    [["user", "add", "a@example.com", "--role", "king"], "--role must be one of owner, admin, member, viewer"],
    [["key", "create", "k", "--scope", "run.view", "--scope", "run.fly"], '(got "run.fly")'],
  ])("%j exits 2 and sends nothing", async (argv, message) => {
    expect(await millwright(...argv)).toMatchObject({ code: 2, err: expect.stringContaining(message) });
    expect(seen).toEqual([]);
  });
  test("but a refusal for the state of a run is failed work", async () => {
    const body = {
      status: 400,
      detail: "The run has already finished. Retry it, or send a follow-up, to continue its work.",
      reason: "run_already_finished",
    };
    answers["POST /api/v1/agent/runs/r1/cancel"] = { status: 400, body };
    expect((await millwright("run", "cancel", "r1")).code).toBe(1);
  });
});

test.each(["run", "schedule", "key", "factory", "model", "code-host"])(
  "an unknown --team is exit code 4 of %s list, and nothing else is sent",
  async (subject) => {
    const body = { status: 404, detail: "No such team, or it is not visible to you.", reason: "team_not_found" };
    answers["GET /api/v1/team/nope"] = { status: 404, body };
    expect(await millwright(subject, "list", "--team", "nope")).toMatchObject({
      code: 4,
      err: "No such team, or it is not visible to you. (team_not_found)",
    });
    expect(seen.map(({ path }) => path)).toEqual(["/api/v1/team/nope"]);
  },
);

test.each<[string[], string, object, RegExp]>([
  [
    ["skill", "list"],
    "/agent",
    {
      agents: [
        {
          name: "review",
          variants: [
            { id: "o/r:skills/review/SKILL.md", description: "Reviews." },
            { id: "o/s:skills/review/SKILL.md", description: "", error: "why" },
          ],
        },
      ],
    },
    /o\/r:skills\/review\/SKILL\.md.*Reviews\.\n.*o\/s:.*why/,
  ],
  [
    ["skill", "list", "--repo", "o/r", "--sort", "last_run", "--refresh", "--malformed"],
    "/agent?repo=o%2Fr&sort_by=last_run&refresh=true&include_malformed_skills=true",
    { agents: [] },
    /SKILL/,
  ],
  [
    ["environment", "list"],
    "/agent/environments",
    {
      environments: [
        {
          uid: "e1",
          config: { name: "web", github_repos: [{ owner: "o", repo: "r" }] },
          last_updated: "now",
          scope: { type: "Team" },
        },
      ],
    },
    /e1.*web.*Team.*o\/r.*now/,
  ],
  [
    ["model", "list"],
    "/agent/models",
    {
      default_model_id: "a",
      models: [
        { id: "a", provider: "OPENAI", disabled: false },
        { id: "b", provider: "GOOGLE", disabled: true, disabled_message: "Set a key." },
      ],
    },
    /a .*default[^]*b .*disabled.*Set a key\./,
  ],
  [
    ["egress-ranges"],
    "/networking/egress-ranges",
    { cidrs: ["203.0.113.0/24", "::/0"] },
    /^203\.0\.113\.0\/24\n::\/0$/,
  ],
])("%j shows %s", async (argv, path, body, shown) => {
  answers[`GET /api/v1${path}`] = { status: 200, body };
  const { code, out } = await millwright(...argv);
  expect([code, out]).toEqual([0, expect.stringMatching(shown)]);
});

test("an environment is shared with one team or one user", async () => {
  answers["POST /api/v1/agent/environments/e1/grants"] = { status: 201, body: { uid: "g1" } };
  expect((await millwright("environment", "share", "e1", "--team", "t1")).out).toBe("grant g1");
  expect((await millwright("environment", "share", "e1", "--user", "u1")).code).toBe(0);
  expect(seen.map(({ body }) => body)).toEqual([{ team_uid: "t1" }, { user_uid: "u1" }]);
  for (const both of [[], ["--team", "t1", "--user", "u1"]])
    expect((await millwright("environment", "share", "e1", ...both)).code).toBe(2);
});

describe("automations", () => {
  const one = {
    uid: "a1",
    name: "alerts",
    enabled: true,
    agent: null,
    prompt: "Look.",
    triggers: [{ provider: "webhook", event: "received" }],
    management: "live",
    last_fired_at: null,
  };
  const decision = {
    event_uid: "d1",
    automation: "alerts",
    provider: "webhook",
    event: "received",
    outcome: "not_matched",
    explanation: "The payload does not match: a.",
    run_id: null,
    decided_at: "now",
  };
  const AT = `/api/v1/factory/${F1}/automations`;
  test("one is created from a JSON file, and a switch replaces nothing else", async () => {
    const file = join(await mkdtemp(join(tmpdir(), "automation-")), "alerts.json");
    await writeFile(file, JSON.stringify({ name: "alerts", prompt: "Look." }));
    answers[`POST ${AT}`] = { status: 201, body: one };
    expect(await millwright("automation", "create", file, "--factory", F1)).toMatchObject({
      code: 0,
      out: expect.stringContaining("automation a1 (alerts)\nby webhook received\nfor the foreman: Look."),
    });
    expect(seen[0]?.body).toEqual({ name: "alerts", prompt: "Look." });
    answers[`GET ${AT}/a1`] = { status: 200, body: one };
    answers[`PUT ${AT}/a1`] = { status: 200, body: { ...one, enabled: false } };
    expect((await millwright("automation", "disable", "a1", "--factory", F1)).out).toContain(", disabled");
    expect(seen.at(-1)?.body).toEqual({ ...one, enabled: false });
  });
  test("a replay that starts nothing is exit code 1", async () => {
    answers[`POST /api/v1/factory/${F1}/webhooks/w1/deliveries/d1/replay`] = {
      status: 200,
      body: { would_trigger: false, label: "Would not trigger", decision },
    };
    const { code, out } = await millwright("automation", "replay", "a1", "w1", "d1", "--factory", F1, "--dry-run");
    expect([code, out]).toEqual([1, "Would not trigger\nnot_matched: The payload does not match: a."]);
    expect(seen[0]?.body).toEqual({ automation_uid: "a1", dry_run: true });
  });
  test("what a code host delivered is replayed the same way, for an automation of a named factory", async () => {
    answers["GET /api/v1/whoami"] = {
      status: 200,
      body: { principal: { type: "user", uid: "u" }, teams: [{ uid: "t1" }] },
    };
    answers["POST /api/v1/team/t1/code-hosts/h1/webhook/deliveries/d1/replay"] = {
      status: 200,
      body: { would_trigger: true, label: "Would trigger", decision },
    };
    const { code, out } = await millwright("code-host", "replay", "h1", "d1", "a1", "--factory", F1, "--dry-run");
    expect([code, out]).toEqual([0, "Would trigger\nnot_matched: The payload does not match: a."]);
    expect(seen.at(-1)?.body).toEqual({ factory_uid: F1, automation_uid: "a1", dry_run: true });
  });
  test.each<[string[], string, object, RegExp]>([
    [
      ["automation", "list", "--factory", F1],
      `GET ${AT}?limit=100`,
      { automations: [one] },
      /a1 +alerts +yes +webhook received +never/,
    ],
    [
      ["automation", "get", "a1", "--factory", F1],
      `GET ${AT}/a1`,
      { ...one, management: "files", agent: "hand" },
      /of files\nby webhook received\nfor hand: Look\./,
    ],
    [
      ["automation", "run", "a1", "--factory", F1],
      `POST ${AT}/a1/run`,
      { ...decision, outcome: "fired", run_id: "r1" },
      /^fired: .*\nrun r1$/,
    ],
    [
      ["automation", "decisions", "a1", "--factory", F1, "--event", "d1"],
      `GET ${AT}/a1/decisions?event_uid=d1`,
      { decisions: [decision] },
      /now +alerts +webhook received +not_matched +The payload/,
    ],
    [
      ["automation", "decisions", "--factory", F1],
      `GET /api/v1/factory/${F1}/decisions`,
      { decisions: [decision] },
      /not_matched/,
    ],
    [["automation", "delete", "a1", "--factory", F1], `DELETE ${AT}/a1`, {}, /a1 is deleted/],
  ])("%j", async (argv, request, body, shown) => {
    answers[request] = { status: 200, body };
    const { code, out } = await millwright(...argv);
    expect([code, out]).toEqual([0, expect.stringMatching(shown)]);
  });
});

describe("webhooks", () => {
  const hook = {
    uid: "w1",
    name: "ci",
    auth_mode: "token",
    signature_scheme: null,
    enabled: true,
    secret_set: true,
    ingress_url: "https://x/webhooks/w/w1",
    delivery_id_header: null,
    last_delivery_at: null,
  };
  test("one that is created is shown with its address and, once, its secret", async () => {
    answers[`POST /api/v1/factory/${F1}/webhooks`] = { status: 201, body: { ...hook, secret: "s3cret" } };
    const { code, out } = await millwright(
      "webhook",
      "create",
      "ci",
      "--factory",
      F1,
      "--auth",
      "token",
      "--delivery-id-header",
      "X-Id",
    );
    expect([code, seen[0]?.body]).toEqual([0, { name: "ci", auth_mode: "token", delivery_id_header: "X-Id" }]);
    expect(out).toContain("https://x/webhooks/w/w1\nsecret, shown once: s3cret");
  });
  test("a switch replaces nothing else", async () => {
    answers["GET /api/v1/factory/webhooks/w1"] = { status: 200, body: { ...hook, delivery_id_header: "X-Id" } };
    answers["PUT /api/v1/factory/webhooks/w1"] = { status: 200, body: { ...hook, enabled: false } };
    expect((await millwright("webhook", "disable", "w1")).out).toContain("disabled");
    expect(seen.at(-1)?.body).toEqual({ name: "ci", delivery_id_header: "X-Id", enabled: false });
  });
  test("exits with 1 and the reason if the filter does not match", async () => {
    answers[`POST /api/v1/factory/${F1}/webhooks/test-filter`] = {
      status: 200,
      body: {
        would_trigger: false,
        label: "Would not trigger",
        checks: { webhook: { detail: "yes" }, payload: { detail: "Does not match: a." } },
      },
    };
    const { code, out } = await millwright("webhook", "test", "w1", "d1", "--factory", F1);
    expect([code, out]).toEqual([1, "Would not trigger\nyes\nDoes not match: a."]);
    expect(seen[0]?.body).toEqual({ webhook_ids: ["w1"], delivery_uid: "d1" });
  });
  test.each<[string[], string, object, RegExp]>([
    [
      ["webhook", "list", "--factory", F1],
      `GET /api/v1/factory/${F1}/webhooks`,
      { webhooks: [hook] },
      /w1 +ci +token +yes +never/,
    ],
    [
      ["webhook", "get", "w1"],
      "GET /api/v1/factory/webhooks/w1",
      { ...hook, enabled: false, secret_set: false },
      /waits for the provider's secret/,
    ],
    [
      ["webhook", "rotate", "w1"],
      "POST /api/v1/factory/webhooks/w1/rotate",
      { ...hook, secret: "new" },
      /shown once: new/,
    ],
    [["webhook", "delete", "w1"], "DELETE /api/v1/factory/webhooks/w1", {}, /w1 is deleted/],
    [
      ["webhook", "deliveries", "w1"],
      "GET /api/v1/factory/webhooks/w1/deliveries",
      { deliveries: [{ uid: "d1", label: "Rejected (auth)", delivery_id: null, size_bytes: 7, received_at: "now" }] },
      /d1 +now +Rejected \(auth\) +7/,
    ],
    [
      ["webhook", "delivery", "w1", "d1"],
      "GET /api/v1/factory/webhooks/w1/deliveries/d1",
      { uid: "d1", label: "Accepted", delivery_id: "id", size_bytes: 7, received_at: "now", payload: { a: 1 } },
      /Accepted +now +id\n\{\n +"a": 1/,
    ],
  ])("%j", async (argv, request, body, shown) => {
    answers[request] = { status: 200, body };
    const { code, out } = await millwright(...argv);
    expect([code, out]).toEqual([0, expect.stringMatching(shown)]);
  });
});

describe("code hosts", () => {
  const webhook = { ingress_url: "https://x/webhooks/c/h1", enabled: true, bot_login: null };
  const AT = "/api/v1/team/t1/code-hosts";
  test("are connected for owners, to GitHub by default", async () => {
    answers[`POST ${AT}`] = { status: 201, body: { uid: "h1", name: "hub" } };
    expect(
      (
        await millwright(
          "code-host",
          "connect",
          "hub",
          "--team",
          "t1",
          "--secret-name",
          "TOKEN",
          "--owner",
          "acme",
          "--owner",
          "acme-labs",
        )
      ).out,
    ).toBe("code host h1 (hub)");
    expect(
      (
        await millwright(
          "code-host",
          "connect",
          "lab",
          "--team",
          "t1",
          "--kind",
          "gitlab",
          "--base-url",
          "https://git.test/api/v4",
        )
      ).code,
    ).toBe(0);
    expect(seen.map(({ body }) => body)).toEqual([
      { name: "hub", kind: "github", secret_name: "TOKEN", owners: ["acme", "acme-labs"] },
      { name: "lab", kind: "gitlab", base_url: "https://git.test/api/v4", owners: [] },
    ]);
  });
  test("get an address for their webhooks, whose secret is shown once", async () => {
    answers[`PUT ${AT}/h1/webhook`] = { status: 200, body: { ...webhook, bot_login: "mill[bot]", secret: "s3cret" } };
    expect((await millwright("code-host", "webhook", "h1", "--team", "t1", "--bot-login", "mill[bot]")).out).toBe(
      "the code host POSTs to https://x/webhooks/c/h1\nthe platform is mill[bot] there\nsecret, shown once: s3cret",
    );
    answers[`PUT ${AT}/h1/webhook`] = { status: 200, body: { ...webhook, enabled: false } };
    expect((await millwright("code-host", "webhook", "h1", "--team", "t1", "--disable")).out).toContain("(disabled)");
    expect(seen.map(({ body }) => body)).toEqual([{ bot_login: "mill[bot]" }, { enabled: false }]);
  });
  test.each<[string[], string, object, RegExp]>([
    [
      ["list"],
      `GET ${AT}`,
      {
        code_hosts: [{ uid: "h1", name: "hub", kind: "github", base_url: "https://api", root: "", owners: ["a", "b"] }],
      },
      /h1 +hub +github +https:\/\/api +a b/,
    ],
    [["remove", "h1"], `DELETE ${AT}/h1`, {}, /h1 is removed/],
    [["rotate", "h1"], `POST ${AT}/h1/webhook/rotate`, { ...webhook, secret: "new" }, /shown once: new/],
    [
      ["deliveries", "h1"],
      `GET ${AT}/h1/webhook/deliveries`,
      {
        deliveries: [
          {
            uid: "d1",
            event: "issues",
            action: "opened",
            label: "Accepted",
            delivery_id: "g1",
            size_bytes: 7,
            received_at: "now",
          },
        ],
      },
      /d1 +now +Accepted +issues opened +7 +g1/,
    ],
    [
      ["delivery", "h1", "d1"],
      `GET ${AT}/h1/webhook/deliveries/d1`,
      {
        uid: "d1",
        event: "push",
        action: null,
        label: "Accepted",
        delivery_id: "g1",
        size_bytes: 7,
        received_at: "now",
        payload: { a: 1 },
      },
      /Accepted +now +push +g1\n\{\n +"a": 1/,
    ],
  ])("%j", async (argv, request, body, shown) => {
    answers[request] = { status: 200, body };
    const { code, out } = await millwright("code-host", ...argv, "--team", "t1");
    expect([code, out]).toEqual([0, expect.stringMatching(shown)]);
  });
});

test("an environment is created with its repositories, setup and secrets, for the team or as a personal one", async () => {
  answers["POST /api/v1/agent/environments"] = { status: 201, body: { uid: "e1", config: { name: "web" } } };
  const lists = [
    "--repo",
    "acme/shop",
    "--repo",
    "acme/api",
    "--setup",
    "npm ci",
    "--secret",
    "TOKEN",
    "--allow-host",
    "npm.test",
  ];
  const made = await millwright("environment", "create", "web", "--image", "node:24", ...lists);
  expect(made).toMatchObject({ code: 0, out: "environment e1 (web)" });
  expect(seen[0]!.body).toEqual({
    config: {
      name: "web",
      docker_image: "node:24",
      github_repos: [
        { owner: "acme", repo: "shop" },
        { owner: "acme", repo: "api" },
      ],
      setup_commands: ["npm ci"],
      secrets: [{ name: "TOKEN" }],
      allowed_hosts: ["npm.test"],
    },
  });
  expect((await millwright("environment", "create", "mine", "--personal")).code).toBe(0);
  expect(seen[1]!.body).toEqual({
    config: { name: "mine", github_repos: [], setup_commands: [], secrets: [] },
    team: false,
  });
  for (const repo of ["noslash", "a/b/c", "/b"]) {
    const refused = await millwright("environment", "create", "web", "--repo", repo);
    expect(refused).toMatchObject({
      code: 2,
      err: expect.stringContaining(`--repo must be OWNER/REPO (got "${repo}").`),
    });
  }
  expect(seen).toHaveLength(2);
});

test("an agent is created with its instructions, in the team or in a factory, and runs are started as it", async () => {
  answers["POST /api/v1/agent/identities"] = { status: 201, body: { uid: "a1", name: "helper" } };
  const made = await millwright("agent", "create", "helper", "--prompt", "Help.", "--secret", "TOKEN", "--factory", F1);
  expect(made).toMatchObject({ code: 0, out: "agent a1 (helper)" });
  expect(seen[0]!.body).toEqual({ name: "helper", prompt: "Help.", secrets: [{ name: "TOKEN" }], factory_uid: F1 });
  expect((await millwright("agent", "create", "helper", "--prompt", "Help.", "--file", "x.md")).code).toBe(2);
  const agent = { uid: "a1", name: "helper", available: true, description: "Helps." };
  answers["GET /api/v1/agent/identities"] = { status: 200, body: { agents: [agent] } };
  expect((await millwright("agent", "list")).out).toMatch(/a1 +helper +yes +Helps\./);
  answers["POST /api/v1/agent/runs"] = { status: 200, body: { run_id: "r1", state: "QUEUED" } };
  expect((await millwright("run", "create", "hello", "--agent", "a1")).code).toBe(0);
  expect(seen.at(-1)!.body).toEqual({ prompt: "hello", agent_identity_uid: "a1", config: {} });
});

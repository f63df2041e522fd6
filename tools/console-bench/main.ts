/**
 * Measures the page of a run with 50,000 events in chromium: how soon it is usable, how smoothly it scrolls, and how much
 * of the browser's memory it takes. Starts a platform of its own. Needs chromium (CHROMIUM_PATH).
 *
 *   npm run bench:console [events]
 */
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { Database, EmbeddedPostgres } from "@millwright/database";
import { OWNER_KEY, Platform } from "@millwright/test-platform";
import { chromium, type Page } from "playwright-core";

const ROOT = join(import.meta.dirname, "../..");
const EVENTS = Number(process.argv[2] ?? 50_000);
const TIMEOUT_MS = 180_000;
const SCROLLS = 300;
/** Larger than the sequence numbers of the run's own events. */
const FIRST_SEQ = 1_000;
const executablePath = process.env["CHROMIUM_PATH"] ?? "/usr/bin/chromium";

/** Records tasks of more than 50 ms, which block scrolling and typing. */
const OBSERVE = `
  window.longTasks = [];
  new PerformanceObserver((list) => longTasks.push(...list.getEntries().map(({ duration }) => duration)))
    .observe({ type: "longtask", buffered: true });`;
/** Scrolls through the whole timeline, one step per frame, and returns the times between frames. */
const SCROLL = `(async () => {
  const timeline = document.querySelector(".timeline");
  timeline.scrollTop = 0;
  const frame = () => new Promise(requestAnimationFrame);
  await frame();
  const step = (timeline.scrollHeight - timeline.clientHeight) / ${SCROLLS};
  const times = [];
  for (let n = 0; n < ${SCROLLS}; n++) {
    const before = performance.now();
    timeline.scrollTop += n % 2 === 0 ? 400 : step * 2 - 400;
    await frame();
    times.push(performance.now() - before);
  }
  return times.sort((a, b) => a - b);
})()`;

execFileSync(process.execPath, ["--no-warnings", join(ROOT, "apps/console/build.mjs")], { stdio: "inherit" });
const platform = await Platform.start();
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu"] });
try {
  const runId = await finishedRun();
  await insertEvents(runId);
  const context = await browser.newContext({ baseURL: platform.url, viewport: { width: 1360, height: 860 } });
  context.setDefaultTimeout(TIMEOUT_MS);
  await context.addInitScript(OBSERVE);
  const page = await context.newPage();
  await page.goto("/runs");
  await page.getByLabel("API key").fill(OWNER_KEY);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("navigation", { name: "Main" }).waitFor();
  for (const show of ["", "?show=all"]) await measure(page, runId, show);
  await measureLink(page, runId);
} finally {
  await browser.close();
  await platform.remove();
}

async function measure(page: Page, runId: string, show: string): Promise<void> {
  const start = performance.now();
  await page.goto(`/runs/${runId}${show}`);
  const steps = page.getByRole("region", { name: "Steps of the run" });
  await steps.getByRole("listitem").first().waitFor();
  const first = performance.now() - start;
  await page
    .getByRole("status")
    .filter({ hasText: /\d events/ })
    .waitFor();
  const all = performance.now() - start;
  const rows = await steps.getByRole("listitem").first().getAttribute("aria-setsize");
  const loading = await longestTask(page);
  const times = (await page.evaluate(SCROLL)) as number[];
  const scrolling = await longestTask(page);
  const nodes = await page.evaluate("document.querySelectorAll('*').length");
  console.log(`\n${show === "" ? "Conversation" : "All events"}: ${rows} rows of ${EVENTS} events`);
  console.table({
    "first rows": ms(first),
    "all events": ms(all),
    "longest task while loading": loading,
    "longest task while scrolling": scrolling,
    "frame while scrolling, median": ms(times[Math.floor(times.length / 2)]!),
    "frame while scrolling, 99 %": ms(times[Math.floor(times.length * 0.99)]!),
    "elements in the document": nodes,
    "heap after a collection": `${Math.round((await heapBytes(page)) / 1024 ** 2)} MB`,
  });
}

/** Measures a link to a step in the middle. */
async function measureLink(page: Page, runId: string): Promise<void> {
  const start = performance.now();
  const seq = middleStep();
  await page.goto(`/runs/${runId}?show=all&step=${seq}`);
  await page
    .locator(".step.target")
    .getByRole("link", { name: `Link to step ${seq}`, exact: true })
    .waitFor();
  console.log(`\nA link to step ${seq} shows it after ${ms(performance.now() - start)}.`);
}

function ms(value: number): string {
  return `${Math.round(value)} ms`;
}

/** Returns the longest task since the last call. */
async function longestTask(page: Page): Promise<string> {
  const longest = (await page.evaluate("Math.max(0, ...longTasks.splice(0))")) as number;
  return longest === 0 ? "below 50 ms" : ms(longest);
}

async function heapBytes(page: Page): Promise<number> {
  const session = await page.context().newCDPSession(page);
  await session.send("HeapProfiler.collectGarbage");
  await session.send("Performance.enable");
  const { metrics } = await session.send("Performance.getMetrics");
  await session.detach();
  return metrics.find(({ name }) => name === "JSHeapUsedSize")!.value;
}

/** Starts a run that says one word, and returns its id when it has succeeded. */
async function finishedRun(): Promise<string> {
  const request = async (path: string, init: RequestInit = {}): Promise<any> => {
    const headers = { authorization: `Bearer ${OWNER_KEY}`, "content-type": "application/json" };
    const response = await fetch(`${platform.url}/api/v1${path}`, { ...init, headers });
    if (!response.ok) throw new Error(`${path} returned ${response.status}: ${await response.text()}`);
    return response.json();
  };
  const prompt = "````scripted\n- say: Hello.\n````";
  const { run_id: id } = await request("/agent/runs", { method: "POST", body: JSON.stringify({ prompt }) });
  for (const deadline = Date.now() + TIMEOUT_MS; Date.now() < deadline; await pause(200)) {
    const { state } = await request(`/agent/runs/${id}`);
    if (state === "SUCCEEDED") return id;
    if (["FAILED", "ERROR", "CANCELLED"].includes(state)) throw new Error(`The run is ${state}.`);
  }
  throw new Error("The run did not end in time.");
}

/** Sequence number of a model step in the middle; every fifth event is one. */
function middleStep(): number {
  return FIRST_SEQ + Math.floor(EVENTS / 10) * 5;
}

/** Appends model steps with Markdown, commands with output, and events of the platform to the run. */
async function insertEvents(runId: string): Promise<void> {
  const server = await EmbeddedPostgres.start({ dataDir: platform.path("data", "postgres") });
  const database = Database.open(server.url("millwright_orchestrator"), { max: 1, applicationName: "console bench" });
  try {
    await database.sql.query(
      `INSERT INTO stream.run_events (run_uid, seq, uid, kind, occurred_at, execution_id, attempt, payload)
       SELECT $1, $2 + n, gen_random_uuid(),
              (ARRAY['model_step', 'tool_start', 'command_output', 'tool_end', 'usage'])[1 + n % 5],
              now() - interval '1 day' + n * interval '1 second', NULL, 1,
              CASE n % 5
                WHEN 0 THEN jsonb_build_object('step_id', n::text, 'tool_calls', '[]'::jsonb, 'text',
                  format(E'Step **%s**: the test \`price_%s\` fails.\\n\\n- read the code\\n- change it\\n\\n\`\`\`ts\\nconst a = %s;\\n\`\`\`', n, n, n))
                WHEN 1 THEN jsonb_build_object('call_id', (n / 5)::text, 'name', 'run_command', 'category', 'command',
                  'input', jsonb_build_object('command', format('npm test -- price_%s', n)))
                WHEN 2 THEN jsonb_build_object('call_id', (n / 5)::text, 'text', repeat(format(E'ok %s\\n', n), 12))
                WHEN 3 THEN jsonb_build_object('call_id', (n / 5)::text, 'name', 'run_command', 'state', 'completed',
                  'duration_ms', 1200, 'output', jsonb_build_object('exit_code', n % 2, 'output', repeat(format(E'ok %s\\n', n), 12)))
                ELSE jsonb_build_object('model_id', 'auto', 'input_tokens', n, 'output_tokens', 7)
              END
         FROM generate_series(0, $3::integer - 1) AS n`,
      [runId, FIRST_SEQ, EVENTS],
    );
  } finally {
    await database.close();
    if (!server.isAdopted) await server.stop();
  }
}

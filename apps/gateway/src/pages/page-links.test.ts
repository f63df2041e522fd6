import { expect, test } from "@jest/globals";
import { manualClock } from "@millwright/clock";
import { pageLinks } from "./page-links.ts";

const RUN = { uid: "r1", ownerType: "team", ownerUid: "t1" };
const setUp = () => {
  const clock = manualClock();
  const links = pageLinks({ publicUrl: "http://here", signingKey: new Uint8Array(32).fill(7), clock });
  return { clock, links, token: new URL(links.sessionLink(RUN)).searchParams.get("view")! };
};

test("a session link opens its own run", () => {
  const { links, token } = setUp();
  expect(links.openView(token, "r1")).toEqual({ runUid: "r1", ownerType: "team", ownerUid: "t1" });
});

test("a session link opens neither another run nor a run of another owner", () => {
  const { links, token } = setUp();
  expect(links.openView(token, "r2")).toBeUndefined();
  expect(links.openView(token.replace("~t1~", "~t2~"), "r1")).toBeUndefined();
  expect(links.openView(token.replace("r1~", "r2~"), "r2")).toBeUndefined();
  expect(links.openView("", "r1")).toBeUndefined();
});

test("a session link expires within 25 hours and is stable within an hour", () => {
  const { clock, links, token } = setUp();
  clock.advance(60_000);
  const [first, second] = [links.sessionLink(RUN), (clock.advance(60_000), links.sessionLink(RUN))];
  expect(second).toBe(first);
  clock.advance(25 * 3_600_000);
  expect(links.openView(token, "r1")).toBeUndefined();
});

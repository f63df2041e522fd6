import { describe, expect, test } from "@jest/globals";
import { DomainError } from "@millwright/errors";
import { Coalescer } from "./coalescer.ts";
import { manualTime } from "../../test/manual-time.ts";

function aCoalescer(sendAll: (items: string[]) => Promise<(string | undefined)[]>, itemsMax = 8) {
  const time = manualTime();
  return { time, coalescer: new Coalescer<string, string>({ timers: time.timers, itemsMax, sendAll }) };
}
const echo = (groups: string[][]) => (items: string[]) => {
  groups.push(items);
  return Promise.resolve(items.map((item) => `${item}!`));
};

describe("calls within 5 ms", () => {
  test("are combined into one call, with the values at the time of sending", async () => {
    const groups: string[][] = [];
    const { time, coalescer } = aCoalescer(echo(groups));
    let late = "early";
    const results = [coalescer.send(() => late), coalescer.send(() => "b")];
    late = "late";
    time.advance(4);
    expect(groups).toEqual([]);
    time.advance(1);
    expect(await Promise.all(results)).toEqual(["late!", "b!"]);
    expect(groups).toEqual([["late", "b"]]);
  });

  test("are sent at once if a caller needs the response, or the call is full", async () => {
    const groups: string[][] = [];
    const { coalescer } = aCoalescer(echo(groups), 2);
    const hurried = coalescer.send(() => "a");
    coalescer.flush();
    await hurried;
    await Promise.all([coalescer.send(() => "b"), coalescer.send(() => "c")]);
    expect(groups).toEqual([["a"], ["b", "c"]]);
  });

  test("are sent singly if the batch is rejected permanently: one invalid item affects no other", async () => {
    const { coalescer } = aCoalescer((items) =>
      items.includes("bad")
        ? Promise.reject(new DomainError({ kind: "invalid_argument", reason: "bad", message: "m" }))
        : Promise.resolve(items),
    );
    const results = Promise.allSettled(["a", "bad", "b"].map((item) => coalescer.send(() => item)));
    coalescer.flush();
    expect((await results).map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
  });

  test("all fail if the failure is transient, or if the response omits them", async () => {
    const away = aCoalescer(() =>
      Promise.reject(new DomainError({ kind: "unavailable", reason: "away", message: "m" })),
    );
    const both = Promise.allSettled(["a", "b"].map((item) => away.coalescer.send(() => item)));
    away.coalescer.flush();
    expect((await both).map(({ status }) => status)).toEqual(["rejected", "rejected"]);
    const silent = aCoalescer(() => Promise.resolve([undefined]));
    const sent = silent.coalescer.send(() => "a");
    silent.coalescer.flush();
    await expect(sent).rejects.toMatchObject({ reason: "answer_incomplete", retryable: true });
  });
});

import { expect, test } from "@jest/globals";
import { sharedRead } from "./shared-reads.ts";

/** A shared read whose reads end when the test ends them. */
function pausedRead() {
  const begun: { key: string; end: PromiseWithResolvers<string> }[] = [];
  const read = sharedRead((key: string, _limit: number) => {
    const end = Promise.withResolvers<string>();
    begun.push({ key, end });
    return end.promise;
  });
  return { read, begun };
}
const turn = () => new Promise((resolve) => setImmediate(resolve));

test("calls that arrive during a read share the next one, which starts after them", async () => {
  const { read, begun } = pausedRead();
  const [first, second, third] = [read("a", 1), read("a", 1), read("a", 1)];
  expect(begun.length).toBe(1);
  begun[0]!.end.resolve("old");
  await turn();
  expect(begun.length).toBe(2);
  begun[1]!.end.resolve("new");
  expect(await Promise.all([first, second, third])).toEqual(["old", "new", "new"]);
});

test("calls with other arguments do not wait", () => {
  const { read, begun } = pausedRead();
  void read("a", 1);
  void read("b", 1);
  void read("a", 2);
  expect(begun.map(({ key }) => key)).toEqual(["a", "b", "a"]);
});

test("a failed read does not fail the next one", async () => {
  const { read, begun } = pausedRead();
  const [failing, next] = [read("a", 1), read("a", 1)];
  begun[0]!.end.reject(new Error("down"));
  await expect(failing).rejects.toThrow("down");
  await turn();
  begun[1]!.end.resolve("up");
  expect(await next).toBe("up");
});

import { Transform, type Duplex, type Readable, type Writable } from "node:stream";

/** Returns whether data may pass now. */
export type IsOpen = () => boolean;

/** Passes data while this is permitted, and fails at the first chunk that is not. */
export const gatedPipe = (isOpen: IsOpen): Transform =>
  new Transform({
    transform(chunk: Buffer, _encoding, done) {
      if (isOpen()) done(null, chunk);
      else done(new Error("The outbound gate is closed."));
    },
  });

/** Joins two connections and checks each chunk of data. When one side fails, both end. */
export function joinGated(a: Duplex, b: Duplex, isOpen: IsOpen): void {
  const end = (): void => {
    a.destroy();
    b.destroy();
  };
  pass(a, b);
  pass(b, a);
  function pass(from: Readable, to: Writable): void {
    const through = gatedPipe(isOpen);
    for (const stream of [from, through]) stream.on("error", end);
    from.on("close", () => through.end());
    from.pipe(through).pipe(to);
  }
}

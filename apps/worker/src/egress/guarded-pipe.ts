import { Transform, type Duplex, type Readable, type Writable } from "node:stream";

/** Whether something may pass now. */
export type IsOpen = () => boolean;

/** Passes bytes on while it may, and breaks at the first that may not. */
export const gatedPipe = (isOpen: IsOpen): Transform =>
  new Transform({
    transform(chunk: Buffer, _encoding, done) {
      if (isOpen()) done(null, chunk);
      else done(new Error("The outbound gate is closed."));
    },
  });

/** Joins two connections: each byte is let through or not when it comes; when one side breaks, both end. */
export function joinGuarded(a: Duplex, b: Duplex, isOpen: IsOpen): void {
  const end = (): void => {
    a.destroy();
    b.destroy();
  };
  one(a, b);
  one(b, a);
  function one(from: Readable, to: Writable): void {
    const through = gatedPipe(isOpen);
    for (const stream of [from, through]) stream.on("error", end);
    from.on("close", () => through.end());
    from.pipe(through).pipe(to);
  }
}

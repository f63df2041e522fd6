import { hash, timingSafeEqual } from "node:crypto";

/** Compares two texts in a time that does not depend on where they differ or on their lengths. */
export const sameText = (a: string, b: string): boolean => timingSafeEqual(digest(a), digest(b));

const digest = (text: string): Buffer => hash("sha256", text, "buffer");

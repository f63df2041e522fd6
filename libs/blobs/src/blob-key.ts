import { invalidArgument } from "@millwright/errors";

const SEGMENT = /^(?!\.)(?!.*\.blob$)[A-Za-z0-9._-]{1,128}$/;
const SEGMENTS_MAX = 16;

/** Returns the segments of a valid key. Errors: blob_key_invalid. */
export function blobKeySegments(key: string): string[] {
  const segments = key.split("/");
  if (segments.length > SEGMENTS_MAX || !segments.every((segment) => SEGMENT.test(segment))) {
    throw invalidArgument("blob_key_invalid", "The key of the file is not valid.");
  }
  return segments;
}

import { timestampFromDate, type Timestamp } from "@bufbuild/protobuf/wkt";

/** Returns the time as a message, or undefined if there is none: a message's member that is undefined is unset. */
export const optionalTimestamp = (time: Date | null | undefined): Timestamp | undefined =>
  time ? timestampFromDate(time) : undefined;

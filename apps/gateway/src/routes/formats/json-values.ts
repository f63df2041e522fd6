import { timestampDate, timestampFromDate, type Timestamp } from "@bufbuild/protobuf/wkt";
import { omitUndefined } from "@millwright/json";

/** Returns a protobuf timestamp in the format of the public API: RFC 3339, UTC, milliseconds. */
export const isoTime = (time: Timestamp): string => timestampDate(time).toISOString();

/** Returns the time bounds of a list query as members of the list request. Absent bounds are omitted. */
export const timeBounds = (query: {
  created_after?: Date | undefined;
  created_before?: Date | undefined;
  updated_after?: Date | undefined;
}) =>
  omitUndefined({
    createdAfter: query.created_after && timestampFromDate(query.created_after),
    createdBefore: query.created_before && timestampFromDate(query.created_before),
    updatedAfter: query.updated_after && timestampFromDate(query.updated_after),
  });

/** Returns milliseconds as an ISO 8601 duration, such as "PT2M30.5S". */
export function isoDuration(ms: number): string {
  const hours = Math.floor(ms / 3_600_000);
  const minutes = Math.floor((ms % 3_600_000) / 60_000);
  const seconds = (ms % 60_000) / 1000;
  const parts = [
    hours > 0 ? `${hours}H` : "",
    minutes > 0 ? `${minutes}M` : "",
    seconds > 0 || ms < 60_000 ? `${seconds}S` : "",
  ];
  return `PT${parts.join("")}`;
}

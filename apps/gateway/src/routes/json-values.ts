import { timestampDate, timestampFromDate, type Timestamp } from "@bufbuild/protobuf/wkt";
import { present } from "@millwright/json";

/** A proto timestamp as the public API writes times: UTC, milliseconds. */
export const isoTime = (time: Timestamp): string => timestampDate(time).toISOString();

/** The time bounds that lists take, as their requests name them; absent ones bound nothing. */
export const timeBounds = (query: {
  created_after?: Date | undefined;
  created_before?: Date | undefined;
  updated_after?: Date | undefined;
}) =>
  present({
    createdAfter: query.created_after && timestampFromDate(query.created_after),
    createdBefore: query.created_before && timestampFromDate(query.created_before),
    updatedAfter: query.updated_after && timestampFromDate(query.updated_after),
  });

/** Milliseconds as an ISO 8601 duration, such as "PT2M30.5S". */
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

/**
 * SQL: when the lease `l` expires, or would have without its extension after a pause of the reaper, if it was not
 * renewed since.
 */
export const LAST_EXPIRY = "CASE WHEN l.expires_at = l.extended_to THEN l.extended_from ELSE l.expires_at END";

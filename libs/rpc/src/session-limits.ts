/**
 * Maximum number of calls and open streams of one HTTP/2 session. A gateway has one session per replica, with a stream
 * for each client that follows events and two for each worker. At the limit all calls of the gateway would wait.
 */
export const STREAMS_MAX = 100_000;

/** Memory that a session may use, in megabytes. At Node's default of 10, new streams are refused after a few thousand. */
export const SESSION_MB_MAX = 1_000;

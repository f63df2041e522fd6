/** The key of the group of runs or spend whose value is not known. */
export const UNKNOWN_KEY = "UNKNOWN";

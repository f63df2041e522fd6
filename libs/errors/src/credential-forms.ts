/** API keys, worker keys, offer tokens, run tokens and workers' session tokens, as they begin; none is shorter. */
const CREDENTIAL = /mw[orsw]?_[\w.-]{20,}/g;

/** A text that may have a caller's own credential in it, for answers: people paste keys into the wrong place. */
export const withoutCredentials = (text: string): string => text.replaceAll(CREDENTIAL, "***");

export const containsCredential = (text: string): boolean => text.search(CREDENTIAL) >= 0;

/** Prefixes of API keys, worker keys, offer tokens, run tokens and session tokens, with their minimum lengths. */
const CREDENTIAL = /mw[orsw]?_[\w.-]{20,}/g;

/**
 * Returns whether a text contains something like a credential, for responses: people paste keys into the wrong field.
 */
export const withoutCredentials = (text: string): string => text.replaceAll(CREDENTIAL, "***");

export const containsCredential = (text: string): boolean => text.search(CREDENTIAL) >= 0;

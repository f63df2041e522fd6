/** Metadata of a schema that extends the published API. Routes that extend it set `extension`. */
export const EXTENSION = { "x-extension": true } as const;

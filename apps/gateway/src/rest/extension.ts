/** Metadata of a schema that extends the published API. A route that does has `extension`. */
export const EXTENSION = { "x-extension": true } as const;

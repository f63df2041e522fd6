/** Returns the REST reference of an OpenAPI document as one page of Markdown. */
export function restReference(document: unknown): string;

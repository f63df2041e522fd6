/** One page of Markdown from an OpenAPI document. */
export function restReference(document: unknown): string;

/** Returns one Markdown page with a table of all errors, by reason. */
export declare function errorReference(root?: string): string;

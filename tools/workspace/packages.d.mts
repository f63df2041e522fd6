export type SourceFile = {
  readonly path: string;
  readonly isTest: boolean;
  readonly imports: readonly string[];
  readonly code: string;
};
export type Package = {
  readonly name: string;
  readonly dir: string;
  readonly manifest: { readonly dependencies?: Readonly<Record<string, string>> };
  readonly files: readonly SourceFile[];
};
export function readPackages(root: string): Package[];
export function readTools(root: string): SourceFile[];
export function packageOf(specifier: string): string;

/** Rules that the API and definition files share; spec fields-factory §1.2, factory-files §3. */

export const FACTORY_NAME_MAX = 100;
export const ALIAS_MAX = 60;
export const ALIAS = /^[A-Za-z0-9 ._-]+$/;

/** Owner (or full namespace, `group/subgroup`) and name of a repository; never a segment that walks a file system. */
export const REPOSITORY_OWNER = /^(?!.*(^|\/)\.{1,2}($|\/))[A-Za-z0-9._-]+(\/[A-Za-z0-9._-]+)*$/;
export const REPOSITORY_NAME = /^(?!\.{1,2}$)[A-Za-z0-9._-]+$/;

export const CODE_FORGES = ["GITHUB", "GITLAB", "AZURE_DEVOPS"] as const;
export const CREDENTIAL_STRATEGIES = ["EXECUTOR", "CREATOR"] as const;

export const isFactoryName = (name: string): boolean => name.trim() !== "" && name.length <= FACTORY_NAME_MAX;
export const isAlias = (alias: string): boolean => alias.trim() !== "" && alias.length <= ALIAS_MAX && ALIAS.test(alias);

declare const brand: unique symbol;

/** A branded text that identifies one kind of resource, so that the kinds cannot be mixed up. */
export type Uid<Kind extends string> = string & { readonly [brand]: Kind };

export type RunUid = Uid<"run">;
export type TeamUid = Uid<"team">;
export type UserUid = Uid<"user">;
export type FactoryUid = Uid<"factory">;
export type TaskUid = Uid<"task">;
export type AgentUid = Uid<"agent">;
export type ConversationUid = Uid<"conversation">;
export type ArtifactUid = Uid<"artifact">;
export type KeyUid = Uid<"key">;
export type EventUid = Uid<"event">;
/** 22 characters of [A-Za-z0-9], the public form of environment ids. */
export type EnvironmentUid = Uid<"environment">;
export type VersionUid = Uid<"version">;

/** Brands an identifier from outside (a row, a message). Does not check its form. */
export const as = <T extends Uid<string>>(text: string): T => text as T;

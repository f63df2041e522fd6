declare const brand: unique symbol;

/** A text that is an identifier of one kind of thing; different kinds do not mix. */
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

/** Names the kind of an identifier that comes from outside (a row, a message). Does not check its form. */
export const as = <T extends Uid<string>>(text: string): T => text as T;

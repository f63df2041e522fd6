import { DomainError } from "@millwright/errors";

/** What files define is changed in the files. */
export const managedByFiles = (message = "Files define this factory's webhooks; change them there."): DomainError =>
  new DomainError({ kind: "conflict", reason: "managed_by_files", message });

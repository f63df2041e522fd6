import { DomainError } from "@millwright/errors";

/** Returns the error of changes that have to be made in the files. */
export const managedByFiles = (
  message = "Files define this factory's webhooks. Change the files instead.",
): DomainError => new DomainError({ kind: "conflict", reason: "managed_by_files", message });

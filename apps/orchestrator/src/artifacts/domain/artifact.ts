import { DomainError, invalidArgument } from "@millwright/errors";
import { omitUndefined } from "@millwright/json";
import { isObject, type JsonObject } from "../../catalog/domain/agent-config.ts";
import type { Artifact, ArtifactType } from "../../runs/domain/run-artifact.ts";
import { canonicalUrl } from "../../catalog/domain/canonical-url.ts";

/** An artifact with the values that are checked when its bytes are uploaded. */
export type StoredArtifact = Artifact & {
  /** False: the upload was announced, but its bytes are not stored yet. */
  readonly isCommitted: boolean;
  readonly sha256?: string;
};

export type ArtifactInsert = Omit<StoredArtifact, "createdAt" | "pullRequestStatus"> & {
  readonly clientArtifactId: string;
  readonly executionId: number;
};

/** Limits of artifacts. */
export const ARTIFACT_LIMITS = {
  /** Maximum size of content inside the request message, in bytes. */
  inlineBytesMax: 256 * 1024,
  fileBytesMax: 100 * 1024 * 1024,
  perRunMax: 500,
  titleMax: 500,
  descriptionMax: 4000,
  filepathMax: 1024,
  referenceTypeMax: 256,
  metadataBytesMax: 16 * 1024,
} as const;

export type NewArtifact = {
  readonly type: string;
  readonly data: JsonObject;
  readonly content?: Uint8Array;
  /** Uploads: size and SHA-256 of the bytes that will be uploaded. */
  readonly sizeBytes: number;
  readonly sha256: string;
};

/** A checked report: its public data, and how its bytes are transferred. */
export type CheckedArtifact = {
  readonly type: ArtifactType;
  readonly data: JsonObject;
  readonly contentType: string;
} & (
  | { readonly bytes: "none" }
  | { readonly bytes: "text"; readonly text: string }
  | { readonly bytes: "inline"; readonly content: Uint8Array }
  | { readonly bytes: "upload"; readonly sizeBytes: number; readonly sha256: string }
);

/**
 * Returns the checked report of an agent. Agents do not report pull requests, because the orchestrator opens them.
 *
 * Errors: artifact_invalid · artifact_too_large (too_large).
 */
export function checkNewArtifact(report: NewArtifact): CheckedArtifact {
  switch (report.type) {
    case "PLAN":
      return {
        type: "PLAN",
        data: omitUndefined({ title: optional(report.data, "title", ARTIFACT_LIMITS.titleMax) }),
        contentType: "text/markdown",
        ...planText(report),
      };
    case "SCREENSHOT":
      return { type: "SCREENSHOT", ...screenshot(report.data), ...bytesOf(report) };
    case "FILE":
      return { type: "FILE", ...file(report.data), ...bytesOf(report) };
    case "EXTERNAL_REFERENCE":
      return { type: "EXTERNAL_REFERENCE", data: externalReference(report.data), contentType: "", bytes: "none" };
    default:
      throw invalid("artifact_type must be PLAN, SCREENSHOT, FILE or EXTERNAL_REFERENCE");
  }
}

function planText({ content }: NewArtifact): { bytes: "text"; text: string } {
  if (content === undefined) throw invalid("a plan must contain its text");
  if (content.byteLength > ARTIFACT_LIMITS.inlineBytesMax) throw tooLarge(ARTIFACT_LIMITS.inlineBytesMax);
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(content);
    if (!text.includes("\0")) return { bytes: "text", text };
  } catch {
    // rejected below, as a NUL is
  }
  throw invalid("a plan's text must be UTF-8 without NUL");
}

function bytesOf(
  report: NewArtifact,
): { bytes: "inline"; content: Uint8Array } | { bytes: "upload"; sizeBytes: number; sha256: string } {
  const { content, sizeBytes, sha256 } = report;
  if (content !== undefined) {
    if (content.byteLength > ARTIFACT_LIMITS.inlineBytesMax) throw tooLarge(ARTIFACT_LIMITS.inlineBytesMax);
    return { bytes: "inline", content };
  }
  if (!Number.isSafeInteger(sizeBytes) || sizeBytes < 0 || !/^[0-9a-f]{64}$/.test(sha256))
    throw invalid("an upload must state its size and its SHA-256 in hexadecimal digits");
  if (sizeBytes > ARTIFACT_LIMITS.fileBytesMax) throw tooLarge(ARTIFACT_LIMITS.fileBytesMax);
  return { bytes: "upload", sizeBytes, sha256 };
}

const IMAGE_TYPES = ["image/png", "image/jpeg", "image/gif", "image/webp"];
const MIME_TYPE =
  /^[a-z0-9][a-z0-9!#$&^_.+-]{0,126}\/[a-z0-9][a-z0-9!#$&^_.+-]{0,126}(?:; ?charset=[A-Za-z0-9-]{1,40})?$/i;

function screenshot(data: JsonObject): { data: JsonObject; contentType: string } {
  const mimeType = optional(data, "mime_type", 255) ?? "image/png";
  if (!IMAGE_TYPES.includes(mimeType)) throw invalid(`a screenshot is one of ${IMAGE_TYPES.join(", ")}`);
  return {
    data: omitUndefined({
      mime_type: mimeType,
      description: optional(data, "description", ARTIFACT_LIMITS.descriptionMax),
    }),
    contentType: mimeType,
  };
}

function file(data: JsonObject): { data: JsonObject; contentType: string } {
  const filepath = (
    optional(data, "filepath", ARTIFACT_LIMITS.filepathMax) ??
    optional(data, "filename", ARTIFACT_LIMITS.filepathMax) ??
    ""
  ).replace(/^(?:\.\/)+/, "");
  const segments = filepath.split("/");
  if (
    filepath === "" ||
    // oxlint-disable-next-line no-control-regex -- refuses control characters
    /[\x00-\x1f\x7f\\]/.test(filepath) ||
    segments.some((segment) => ["", ".", ".."].includes(segment))
  )
    throw invalid("filepath must be a relative path inside the workspace");
  const mimeType = optional(data, "mime_type", 255) || "application/octet-stream";
  if (!MIME_TYPE.test(mimeType)) throw invalid("mime_type is not a media type");
  const facts = {
    filename: segments.at(-1),
    filepath,
    mime_type: mimeType,
    title: optional(data, "title", ARTIFACT_LIMITS.titleMax),
    description: optional(data, "description", ARTIFACT_LIMITS.descriptionMax),
  };
  return { data: omitUndefined(facts), contentType: mimeType };
}

function externalReference(data: JsonObject): JsonObject {
  const referenceType = optional(data, "reference_type", ARTIFACT_LIMITS.referenceTypeMax);
  if (!referenceType) throw invalid("reference_type must be given");
  const url = canonicalUrl(optional(data, "url", 8192) ?? "");
  if (url === undefined) throw invalid("url must be an http(s) URL of at most 2048 characters");
  const metadata = data["metadata"] ?? undefined;
  if (
    metadata !== undefined &&
    (!isObject(metadata) || JSON.stringify(metadata).length > ARTIFACT_LIMITS.metadataBytesMax)
  )
    throw invalid(`metadata must be an object of at most ${ARTIFACT_LIMITS.metadataBytesMax} bytes`);
  return omitUndefined({
    reference_type: referenceType,
    url,
    title: optional(data, "title", ARTIFACT_LIMITS.titleMax),
    metadata,
  });
}

function optional(data: JsonObject, key: string, max: number): string | undefined {
  const value = data[key] ?? undefined;
  if (value === undefined) return undefined;
  if (typeof value === "string" && value.length <= max && !value.includes("\0")) return value;
  throw invalid(`${key} must be a text of at most ${max} characters`);
}

const invalid = (text: string): DomainError =>
  invalidArgument("artifact_invalid", `The artifact is not valid: ${text}.`);

const tooLarge = (bytesMax: number): DomainError =>
  new DomainError({
    kind: "too_large",
    reason: "artifact_too_large",
    message: `The artifact must have at most ${bytesMax} bytes.`,
  });

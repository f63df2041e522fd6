import { useEffect, useState, type ReactNode } from "react";
import { useQuery } from "@tanstack/react-query";
import { Download } from "lucide-react";
import { api, dataOf } from "../../api/client.ts";
import { errorOf } from "../../api/problem.ts";
import type { components } from "../../gen/api.ts";
import { Button } from "../../ui/button.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { ErrorView } from "../../ui/error-view.tsx";
import { Markdown } from "../../ui/markdown.tsx";
import { SafeText, safeHref } from "../../ui/safe-text.tsx";
import { saveFile } from "../../ui/save-file.ts";
import { artifactContentUrl } from "./artifact-href.ts";
import { sizeText } from "./size-text.ts";

type Artifact = components["schemas"]["Artifact"];
type StoredFile = Exclude<Artifact, { artifact_type: "PLAN" }>;

/** Larger files are only downloaded. */
const TEXT_BYTES_MAX = 512 * 1024;
const IMAGE_BYTES_MAX = 20 * 1024 * 1024;

/** Shows a plan, an image or a text, and downloads any artifact. */
export function ArtifactDialog({
  uid,
  title,
  onClose,
}: {
  uid: string;
  title: string;
  onClose: () => void;
}): ReactNode {
  const { data, error } = useQuery({
    queryKey: ["artifact", uid],
    queryFn: ({ signal }) =>
      dataOf(api.GET("/api/v1/agent/artifacts/{artifactUid}", { params: { path: { artifactUid: uid } }, signal })),
  });
  return (
    <Dialog title={title} className="wide" onClose={onClose}>
      <div className="body">
        {error ? <ErrorView error={error} /> : data ? <ArtifactContent artifact={data} /> : <p>Loading…</p>}
      </div>
    </Dialog>
  );
}

function ArtifactContent({ artifact }: { artifact: Artifact }): ReactNode {
  if (artifact.artifact_type === "PLAN")
    return (
      <>
        <Markdown>{artifact.data.content}</Markdown>
        <div>
          <Button isSmall onClick={() => saveFile("plan.md", artifact.data.content, "text/markdown;charset=utf-8")}>
            <Download size={13} aria-hidden />
            Download
          </Button>
        </div>
      </>
    );
  const { download_url: url, description, content_type: type } = artifact.data;
  const size = "size_bytes" in artifact.data ? sizeText(artifact.data.size_bytes) : undefined;
  return (
    <>
      <Preview artifact={artifact} />
      {description !== undefined && (
        <p>
          <SafeText>{description}</SafeText>
        </p>
      )}
      <p>
        <a href={safeHref(url)} download className="button small">
          Download
        </a>{" "}
        <span className="soft">{[type, size].filter(Boolean).join(" · ")}</span>
      </p>
    </>
  );
}

/** The content of an image or a text. It is read into memory, so the browser never interprets it as a page. */
function Preview({ artifact }: { artifact: StoredFile }): ReactNode {
  const { content_type: type } = artifact.data;
  const url = artifactContentUrl(artifact.artifact_uid);
  const size = "size_bytes" in artifact.data ? artifact.data.size_bytes : undefined;
  const kind = kindOf(type);
  const sizeMax = kind === "image" ? IMAGE_BYTES_MAX : TEXT_BYTES_MAX;
  const { data, error } = useQuery({
    queryKey: ["artifact", artifact.artifact_uid, "content"],
    enabled: kind !== undefined && (size ?? 0) <= sizeMax,
    staleTime: Infinity,
    gcTime: 0,
    queryFn: async ({ signal }) => {
      const response = await fetch(url, { signal });
      if (!response.ok) throw await errorOf(`GET ${url}`, response);
      return kind === "image" ? new Blob([await response.arrayBuffer()], { type }) : response.text();
    },
  });
  if (error) return <ErrorView error={error} />;
  if (data === undefined) return null;
  if (typeof data !== "string")
    return <BlobImage blob={data} alt={artifact.data.description ?? "Image without a description"} />;
  if (kind === "markdown") return <Markdown>{data}</Markdown>;
  return (
    <pre className="payload" tabIndex={0} role="region" aria-label="Content">
      <SafeText>{data}</SafeText>
    </pre>
  );
}

function kindOf(type: string): "image" | "markdown" | "text" | undefined {
  if (/^image\/(?:png|jpeg|gif|webp)\b/.test(type)) return "image";
  if (/^text\/(?:x-)?markdown\b/.test(type)) return "markdown";
  return /^text\/|[/+](?:json|xml|yaml)\b/.test(type) ? "text" : undefined;
}

function BlobImage({ blob, alt }: { blob: Blob; alt: string }): ReactNode {
  const [url, setUrl] = useState<string>();
  useEffect(() => {
    const created = URL.createObjectURL(blob);
    setUrl(created);
    return () => URL.revokeObjectURL(created);
  }, [blob]);
  return url === undefined ? null : <img className="screenshot" src={url} alt={alt} />;
}

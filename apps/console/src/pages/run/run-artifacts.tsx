import { useState, type ReactNode } from "react";
import { useQuery } from "@tanstack/react-query";
import { Camera, ExternalLink, FileText, GitPullRequest, NotebookText } from "lucide-react";
import { api, dataOf, viewToken } from "../../api/client.ts";
import { useSession } from "../../app/session.tsx";
import type { components } from "../../gen/api.ts";
import { Dialog } from "../../ui/dialog.tsx";
import { ErrorView } from "../../ui/error-view.tsx";
import { Markdown } from "../../ui/markdown.tsx";
import { Card } from "../../ui/page.tsx";
import { SafeText, safeHref } from "../../ui/safe-text.tsx";

type RunItem = components["schemas"]["RunItem"];
type ArtifactItem = components["schemas"]["ArtifactItem"];

/** The artifacts of a run. Hidden while there are none. */
export function RunArtifacts({ run }: { run: RunItem }): ReactNode {
  const artifacts = run.artifacts ?? [];
  if (artifacts.length === 0) return null;
  return (
    <Card title="Artifacts">
      <ul className="artifacts">
        {artifacts.map((artifact, index) => (
          <li key={index}>
            <ArtifactRow artifact={artifact} runId={run.run_id} />
          </li>
        ))}
      </ul>
    </Card>
  );
}

function ArtifactRow({ artifact, runId }: { artifact: ArtifactItem; runId: string }): ReactNode {
  switch (artifact.artifact_type) {
    case "PULL_REQUEST":
      return (
        <OutsideLink url={artifact.data.url} icon={<GitPullRequest size={14} aria-hidden />}>
          {artifact.data.branch} <span className="badge plain">{artifact.data.status}</span>
        </OutsideLink>
      );
    case "EXTERNAL_REFERENCE":
      return (
        <OutsideLink url={artifact.data.url} icon={<ExternalLink size={14} aria-hidden />}>
          <SafeText>{artifact.data.title ?? artifact.data.url}</SafeText>
        </OutsideLink>
      );
    case "PLAN":
      return artifact.data.artifact_uid === undefined ? null : (
        <OpenArtifact
          runId={runId}
          uid={artifact.data.artifact_uid}
          title={artifact.data.title ?? "Plan"}
          icon={<NotebookText size={14} aria-hidden />}
        />
      );
    case "SCREENSHOT":
      return (
        <OpenArtifact
          runId={runId}
          uid={artifact.data.artifact_uid}
          title={artifact.data.description ?? "Screenshot"}
          icon={<Camera size={14} aria-hidden />}
        />
      );
    default:
      return (
        <OpenArtifact
          runId={runId}
          uid={artifact.data.artifact_uid}
          title={artifact.data.title ?? artifact.data.filename}
          icon={<FileText size={14} aria-hidden />}
        />
      );
  }
}

/** A link that an agent reported. Pull requests of local repositories are pages of the console. */
function OutsideLink({ url, icon, children }: { url: string; icon: ReactNode; children: ReactNode }): ReactNode {
  const given = safeHref(url);
  const isOurs = given !== undefined && new URL(given, location.origin).origin === location.origin;
  const view = viewToken();
  const href = isOurs && view !== undefined ? `${given}?view=${encodeURIComponent(view)}` : given;
  return (
    <span className="artifact">
      {icon}
      {href === undefined ? (
        <span>{children}</span>
      ) : (
        <a href={href} {...(isOurs ? {} : { target: "_blank", rel: "noopener noreferrer nofollow" })}>
          {children}
        </a>
      )}
    </span>
  );
}

function OpenArtifact({
  runId,
  uid,
  title,
  icon,
}: {
  runId: string;
  uid: string;
  title: string;
  icon: ReactNode;
}): ReactNode {
  const [isOpen, setOpen] = useState(false);
  const view = viewToken();
  const { isLinkViewer } = useSession();
  if (isLinkViewer)
    return (
      <span className="artifact">
        {icon}
        <a href={`/runs/${runId}/artifacts/${uid}?view=${encodeURIComponent(view ?? "")}`}>
          <SafeText>{title}</SafeText>
        </a>
      </span>
    );
  return (
    <span className="artifact">
      {icon}
      <button type="button" className="link" onClick={() => setOpen(true)}>
        <SafeText>{title}</SafeText>
      </button>
      {isOpen && <ArtifactDialog uid={uid} title={title} onClose={() => setOpen(false)} />}
    </span>
  );
}

function ArtifactDialog({ uid, title, onClose }: { uid: string; title: string; onClose: () => void }): ReactNode {
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

function ArtifactContent({ artifact }: { artifact: components["schemas"]["Artifact"] }): ReactNode {
  if (artifact.artifact_type === "PLAN") return <Markdown>{artifact.data.content}</Markdown>;
  const { download_url: url, description } = artifact.data;
  const isOurs = new URL(url, location.origin).origin === location.origin;
  return (
    <>
      {artifact.artifact_type === "SCREENSHOT" && isOurs && (
        <img className="screenshot" src={url} alt={description ?? "Screenshot without a description"} />
      )}
      {description !== undefined && (
        <p>
          <SafeText>{description}</SafeText>
        </p>
      )}
      <p>
        <a href={safeHref(url)} download>
          Download
        </a>{" "}
        <span className="soft">{artifact.data.content_type}</span>
      </p>
    </>
  );
}

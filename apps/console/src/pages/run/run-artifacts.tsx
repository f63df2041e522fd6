import { useState, type ReactNode } from "react";
import { Camera, ExternalLink, FileText, GitPullRequest, NotebookText } from "lucide-react";
import { viewToken } from "../../api/client.ts";
import { useSession } from "../../app/session.tsx";
import type { components } from "../../gen/api.ts";
import { Card } from "../../ui/page.tsx";
import { SafeText, safeHref } from "../../ui/safe-text.tsx";
import { ArtifactDialog } from "./artifact-dialog.tsx";
import { artifactHref } from "./artifact-href.ts";
import { sizeText } from "./size-text.ts";

type RunItem = components["schemas"]["RunItem"];
type ArtifactItem = components["schemas"]["ArtifactItem"];

/** The artifacts of a run. Hidden while there are none. */
export function RunArtifacts({ run, title = "Artifacts" }: { run: RunItem; title?: string }): ReactNode {
  const artifacts = run.artifacts ?? [];
  if (artifacts.length === 0) return null;
  return (
    <Card title={<SafeText>{title}</SafeText>}>
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

/** One artifact of a run: a link, or a button that shows it. */
export function ArtifactRow({ artifact, runId }: { artifact: ArtifactItem; runId: string }): ReactNode {
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
          detail="plan"
          icon={<NotebookText size={14} aria-hidden />}
        />
      );
    case "SCREENSHOT":
      return (
        <OpenArtifact
          runId={runId}
          uid={artifact.data.artifact_uid}
          title={artifact.data.description ?? "Screenshot"}
          detail={artifact.data.mime_type}
          icon={<Camera size={14} aria-hidden />}
        />
      );
    default:
      return (
        <OpenArtifact
          runId={runId}
          uid={artifact.data.artifact_uid}
          title={artifact.data.title ?? artifact.data.filename}
          detail={[artifact.data.mime_type, sizeText(artifact.data.size_bytes)].filter(Boolean).join(" · ")}
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
  detail,
  icon,
}: {
  runId: string;
  uid: string;
  title: string;
  /** Type and size. */
  detail: string;
  icon: ReactNode;
}): ReactNode {
  const [isOpen, setOpen] = useState(false);
  const { isLinkViewer } = useSession();
  if (isLinkViewer)
    return (
      <span className="artifact">
        {icon}
        <a href={artifactHref(runId, uid)}>
          <SafeText>{title}</SafeText>
        </a>
        <span className="soft small">{detail}</span>
      </span>
    );
  return (
    <span className="artifact">
      {icon}
      <button type="button" className="link" onClick={() => setOpen(true)}>
        <SafeText>{title}</SafeText>
      </button>
      <span className="soft small">{detail}</span>
      {isOpen && <ArtifactDialog uid={uid} title={title} onClose={() => setOpen(false)} />}
    </span>
  );
}

import { useRef, useState, type ReactNode } from "react";
import { Link } from "@tanstack/react-router";
import { useMutation, useQuery } from "@tanstack/react-query";
import { api, dataOf } from "../../api/client.ts";
import { useForemanMissing } from "../../app/foreman-notice.tsx";
import { useMay } from "../../app/session.tsx";
import type { components } from "../../gen/api.ts";
import { Button } from "../../ui/button.tsx";
import { CopyCommands } from "../../ui/copy.tsx";
import { ErrorView } from "../../ui/error-view.tsx";
import { Card } from "../../ui/page.tsx";
import { SafeText } from "../../ui/safe-text.tsx";
import { Diagnostics, type Diagnostic } from "./diagnostics.tsx";
import { sourceQuery } from "./factory-queries.ts";
import { FilesEditor } from "./files-editor.tsx";
import { PlanTable } from "./plan-table.tsx";
import { useApply } from "./use-apply.ts";
import { inFactory, type FactoryTab } from "./in-factory.tsx";

type Source = components["schemas"]["FactorySource"];
type DefinitionFile = components["schemas"]["DefinitionFile"];

/** Shows what applying the definition changes, then applies it. */
function PlanPage({ factoryUid }: FactoryTab): ReactNode {
  const { data: source, error, refetch } = useQuery(sourceQuery(factoryUid));
  if (!source)
    return error ? <ErrorView error={error} onRetry={() => void refetch()} /> : <p className="soft">Loading…</p>;
  return <PlanView factoryUid={factoryUid} source={source} />;
}

function PlanView({ factoryUid, source }: { factoryUid: string; source: Source }): ReactNode {
  const isGit = source.kind === "git";
  const mayApply = useMay("source.apply");
  const mayReplaceSource = useMay("factory.manage");
  const [files, setFiles] = useState<readonly DefinitionFile[]>(source.files);
  const [path, setPath] = useState(source.files[0]?.path);
  const text = useRef<HTMLTextAreaElement>(null);
  const plan = useMutation({
    mutationFn: (planned: readonly DefinitionFile[]) =>
      dataOf(
        api.POST("/api/v1/factory/{uid}/source/plan", {
          params: { path: { uid: factoryUid } },
          body: isGit ? {} : { files: [...planned] },
        }),
      ),
  });
  const apply = useApply(factoryUid);
  const isForemanMissing = useForemanMissing(factoryUid);
  const isCurrent = plan.variables === files;
  const open = ({ path: at, line, column }: Diagnostic): void => {
    const content = files.find((file) => file.path === at)?.content;
    if (content === undefined) return;
    setPath(at);
    const lines = content.split("\n");
    const start = lines.slice(0, line - 1).reduce((sum, each) => sum + each.length + 1, 0) + Math.max(column - 1, 0);
    // after the editor shows the file
    requestAnimationFrame(() => {
      text.current?.focus();
      text.current?.setSelectionRange(start, start);
    });
  };
  return (
    <>
      <Card
        title={isGit ? "Source" : "Files"}
        actions={
          <CopyCommands path={`/factory/${factoryUid}/source/plan`} method="POST" body={isGit ? {} : { files }} />
        }
      >
        {isGit ? (
          <p>
            The newest commit of <SafeText>{source.branch ?? "the branch"}</SafeText> in{" "}
            <SafeText>{source.repository_url ?? ""}</SafeText> is planned and applied. Change the files there.
          </p>
        ) : (
          <FilesEditor files={files} path={path} onPath={setPath} onFiles={setFiles} textRef={text} />
        )}
        <div className="filters">
          <Button disabled={plan.isPending || (!isGit && files.length === 0)} onClick={() => plan.mutate(files)}>
            Plan
          </Button>
          <Button
            look="primary"
            disabled={
              !mayApply || (!isGit && !mayReplaceSource) || apply.isPending || !isCurrent || plan.data?.valid !== true
            }
            onClick={() => apply.mutate(isGit ? {} : { files: [...files] }, { onSuccess: () => plan.reset() })}
          >
            Apply
          </Button>
          <span className="soft">
            {plan.data && !isCurrent ? "The files have changed since the plan: plan again." : "A plan changes nothing."}
          </span>
        </div>
      </Card>
      {plan.error && <ErrorView error={plan.error} />}
      {apply.error && <ErrorView error={apply.error} />}
      {apply.isSuccess && source.state === "APPLIED" && !isForemanMissing && !plan.data && (
        <div className="notice good" role="status">
          <p>The definition is applied, and the factory can receive work.</p>
          <p>
            <Link to="/work" search={{ factory: factoryUid, dialog: "dispatch" }}>
              Dispatch work
            </Link>
          </p>
        </div>
      )}
      {plan.data && isCurrent && (
        <Card title={plan.data.valid ? "Plan" : "The definition has errors"}>
          <div className="stack">
            <Diagnostics diagnostics={plan.data.diagnostics} {...(isGit ? {} : { files, onOpen: open })} />
            {plan.data.valid &&
              (plan.data.plan.length === 0 ? (
                <p>Nothing to change: the live resources are as the definition states.</p>
              ) : (
                <PlanTable caption="Changes" items={plan.data.plan} />
              ))}
          </div>
        </Card>
      )}
    </>
  );
}

export default inFactory(PlanPage);

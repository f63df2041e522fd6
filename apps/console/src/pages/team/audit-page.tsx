import { useState, type ReactNode } from "react";
import { getRouteApi, useNavigate } from "@tanstack/react-router";
import { api, dataOf } from "../../api/client.ts";
import type { components } from "../../gen/api.ts";
import { Button } from "../../ui/button.tsx";
import { CopyButton, CopyCommands, Id } from "../../ui/copy.tsx";
import { DataTable } from "../../ui/data-table.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { ListView } from "../../ui/list-view.tsx";
import { EmptyState, Facts, Page } from "../../ui/page.tsx";
import { SafeText } from "../../ui/safe-text.tsx";
import { Time } from "../../ui/time.tsx";
import { ForTeam } from "./for-team.tsx";

type Entry = components["schemas"]["AuditEntry"];
const PAGE_SIZE = 50;

/** Who changed what in the team, newest first. */
export default function AuditPage(): ReactNode {
  return (
    <ForTeam title="Audit log" permission="team.manage">
      {({ uid }) => <AuditLog teamUid={uid} />}
    </ForTeam>
  );
}

/** Returns the name of an event without the prefix and version that all have. */
const nameOf = (type: string): string => type.replace(/^millwright\./, "").replace(/\.v\d+$/, "");

function AuditLog({ teamUid }: { teamUid: string }): ReactNode {
  const { cursor } = getRouteApi("/audit").useSearch();
  const navigate = useNavigate({ from: "/audit" });
  const [open, setOpen] = useState<Entry>();
  return (
    <Page
      title="Audit log"
      subtitle="An entry appears within seconds of its change."
      actions={<CopyCommands path={`/team/${teamUid}/audit`} />}
    >
      <ListView
        queryKey={["audit", teamUid]}
        load={(at, signal) =>
          dataOf(
            api.GET("/api/v1/team/{uid}/audit", {
              params: {
                path: { uid: teamUid },
                query: { limit: PAGE_SIZE, ...(at === undefined ? {} : { cursor: at }) },
              },
              signal,
            }),
          )
        }
        pageInfoOf={({ page_info: info }) => info}
        isEmpty={({ entries }) => entries.length === 0}
        cursor={cursor}
        onCursor={(next) => void navigate({ search: { cursor: next } })}
        empty={
          <EmptyState title="No entries yet">
            Changes to keys, members, secrets, factories and other resources of the team are recorded here.
          </EmptyState>
        }
      >
        {({ entries }) => (
          <DataTable<Entry>
            caption="Audit log"
            rows={entries}
            keyOf={({ uid }) => uid}
            columns={[
              { title: "Time", cell: ({ occurred_at: at }) => <Time at={at} /> },
              {
                title: "Change",
                cell: ({ type }) => (
                  <code>
                    <SafeText>{nameOf(type)}</SafeText>
                  </code>
                ),
              },
              {
                title: "Resource",
                cell: ({ entity, entity_uid: uid }) => (
                  <>
                    <SafeText>{entity}</SafeText> <Id value={uid} />
                  </>
                ),
              },
              {
                title: "By",
                cell: ({ actor }) => (
                  <>
                    <SafeText>{actor.type.replaceAll("_", " ")}</SafeText>{" "}
                    {actor.uid !== "" && <Id value={actor.uid} />}
                  </>
                ),
              },
              { title: "Service", cell: ({ source }) => <span className="soft small">{source}</span> },
              {
                title: "Actions",
                cell: (entry) => (
                  <span className="row-actions">
                    <Button isSmall aria-label={`Details of ${nameOf(entry.type)}`} onClick={() => setOpen(entry)}>
                      Details
                    </Button>
                  </span>
                ),
              },
            ]}
          />
        )}
      </ListView>
      {open && <EntryDialog entry={open} onClose={() => setOpen(undefined)} />}
    </Page>
  );
}

function EntryDialog({ entry, onClose }: { entry: Entry; onClose: () => void }): ReactNode {
  const payload = JSON.stringify(entry.payload, undefined, 2);
  return (
    <Dialog title={nameOf(entry.type)} onClose={onClose}>
      <div className="body">
        <Facts
          entries={[
            ["Time", <Time key="time" at={entry.occurred_at} />],
            ["Event", <code key="type">{entry.type}</code>],
            ["Resource", <Id key="entity" value={entry.entity_uid} isFull />],
            ["By", `${entry.actor.type} ${entry.actor.uid}`],
            ["Request", entry.request_id === "" ? undefined : <Id key="request" value={entry.request_id} isFull />],
            ["Cause", entry.cause],
          ]}
        />
        <div className="markdown">
          <p>
            Payload <CopyButton text={payload} label="payload" />
          </p>
          <pre tabIndex={0} aria-label="Payload">
            <SafeText>{payload}</SafeText>
          </pre>
        </div>
      </div>
      <footer>
        <Button onClick={onClose}>Close</Button>
      </footer>
    </Dialog>
  );
}

import { useCallback, type ReactNode } from "react";
import { getRouteApi, useNavigate } from "@tanstack/react-router";
import { api, dataOf } from "../../api/client.ts";
import { CopyCommands } from "../../ui/copy.tsx";
import { ClearFilters, TextFilter } from "../../ui/filters.tsx";
import { ListView } from "../../ui/list-view.tsx";
import { EmptyState } from "../../ui/page.tsx";
import { stringifySearch } from "../../ui/search-params.ts";
import { DecisionTable } from "./decision-table.tsx";
import { inFactory, type FactoryTab } from "./in-factory.tsx";

const PAGE_SIZE = 50;
const REFRESH_MS = 5_000;

/** Why each automation did or did not fire, for all events of the factory or for one. */
function DecisionsPage({ factoryUid }: FactoryTab): ReactNode {
  const { event, cursor } = getRouteApi("/factories/$factoryUid/decisions").useSearch();
  const navigate = useNavigate({ from: "/factories/$factoryUid/decisions" });
  const setEvent = useCallback(
    (uid: string | undefined) => void navigate({ search: { event: uid }, replace: true }),
    [navigate],
  );
  return (
    <>
      <div className="filters">
        <TextFilter label="Uid of an event or delivery" value={event} onChange={setEvent} />
        <ClearFilters isActive={event !== undefined} onClear={() => setEvent(undefined)} />
        <CopyCommands
          path={`/factory/${factoryUid}/decisions${stringifySearch({ event_uid: event })}`}
          cli={`automation decisions --factory ${factoryUid}${event === undefined ? "" : ` --event ${event}`}`}
        />
      </div>
      <ListView
        queryKey={["factories", factoryUid, "decisions", event ?? ""]}
        refetchMs={REFRESH_MS}
        load={(at, signal) =>
          dataOf(
            api.GET("/api/v1/factory/{uid}/decisions", {
              params: { path: { uid: factoryUid }, query: { event_uid: event, limit: PAGE_SIZE, cursor: at } },
              signal,
            }),
          )
        }
        pageInfoOf={({ page_info: info }) => info}
        isEmpty={({ decisions }) => decisions.length === 0}
        cursor={cursor}
        onCursor={(next) => void navigate({ search: { event, cursor: next } })}
        empty={
          event === undefined ? (
            <EmptyState title="No decisions yet">
              Each event that an automation listens to gets a decision with its reason. Send a delivery to a webhook, or
              wait for a trigger.
            </EmptyState>
          ) : (
            <EmptyState title="No decision about this event">
              No automation of the factory listened to it, or its decisions have expired: they are retained for 30 days.
              Check that an automation has a trigger with the provider of the event and, for a delivery, with its
              webhook.
            </EmptyState>
          )
        }
      >
        {({ decisions }) => <DecisionTable factoryUid={factoryUid} decisions={decisions} />}
      </ListView>
    </>
  );
}

export default inFactory(DecisionsPage);

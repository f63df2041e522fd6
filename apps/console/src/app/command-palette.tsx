import { useDeferredValue, useState, type ReactNode } from "react";
import { Command } from "cmdk";
import { useNavigate } from "@tanstack/react-router";
import { useQuery } from "@tanstack/react-query";
import { api, dataOf } from "../api/client.ts";
import { Dialog } from "../ui/dialog.tsx";
import { SafeText } from "../ui/safe-text.tsx";
import { StateBadge } from "../ui/state-badge.tsx";
import { NAVIGATION } from "./navigation.ts";

const RUNS_MAX = 8;
const UUID = /^[0-9a-f]{8}-[0-9a-f-]{27}$/;

/** Finds pages and runs by typing. Opened by Ctrl-K. */
export default function CommandPalette({ onClose }: { onClose: () => void }): ReactNode {
  const navigate = useNavigate();
  const [text, setText] = useState("");
  const query = useDeferredValue(text.trim());
  const { data: runs = [] } = useQuery({
    queryKey: ["runs", "palette", query],
    enabled: query.length > 1 && !UUID.test(query),
    queryFn: async ({ signal }) =>
      (await dataOf(api.GET("/api/v1/agent/runs", { params: { query: { q: query, limit: RUNS_MAX } }, signal }))).runs,
  });
  const go = (to: string): void => {
    onClose();
    void navigate({ to });
  };
  return (
    <Dialog title="Search" isBare className="palette" onClose={onClose}>
      <Command label="Search pages and runs">
        <Command.Input value={text} onValueChange={setText} placeholder="Go to a page, or search runs…" autoFocus />
        <Command.List>
          <Command.Empty>Nothing found.</Command.Empty>
          {UUID.test(query) && (
            <Command.Item value={query} onSelect={() => go(`/runs/${query}`)}>
              Open run <span className="mono">{query}</span>
            </Command.Item>
          )}
          <Command.Group heading="Pages">
            {NAVIGATION.flatMap(({ entries }) => entries).map(({ label, to, icon: Icon }) => (
              <Command.Item key={label} value={label} onSelect={() => go(String(to))}>
                <Icon size={15} aria-hidden />
                {label}
              </Command.Item>
            ))}
          </Command.Group>
          {runs.length > 0 && (
            <Command.Group heading="Runs">
              {runs.map(({ run_id: id, title, state }) => (
                <Command.Item key={id} value={`${title} ${id} ${query}`} onSelect={() => go(`/runs/${id}`)}>
                  <StateBadge state={state} />
                  <span className="truncate">
                    <SafeText>{title}</SafeText>
                  </span>
                </Command.Item>
              ))}
            </Command.Group>
          )}
        </Command.List>
      </Command>
    </Dialog>
  );
}

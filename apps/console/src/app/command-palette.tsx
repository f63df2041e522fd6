import { useDeferredValue, useState, type ReactNode } from "react";
import { Command } from "cmdk";
import { useNavigate } from "@tanstack/react-router";
import { useQuery } from "@tanstack/react-query";
import { CalendarPlus, Send } from "lucide-react";
import { listRuns } from "../api/queries.ts";
import { Dialog } from "../ui/dialog.tsx";
import { SafeText } from "../ui/safe-text.tsx";
import { StateBadge } from "../ui/state-badge.tsx";
import { NAVIGATION } from "./navigation.ts";
import { useMay } from "./session.tsx";
import { usePaletteItems } from "./use-palette-items.ts";

const RUNS_MAX = 8;
const UUID = /^[0-9a-f]{8}-[0-9a-f-]{27}$/;

/** Finds actions, pages, resources and runs by typing. Opened by Ctrl-K. */
export default function CommandPalette({ onClose }: { onClose: () => void }): ReactNode {
  const navigate = useNavigate();
  const [text, setText] = useState("");
  const query = useDeferredValue(text.trim());
  const { data: runs = [] } = useQuery({
    queryKey: ["runs", "palette", query],
    enabled: query.length > 1 && !UUID.test(query),
    queryFn: async ({ signal }) => (await listRuns({ q: query, limit: RUNS_MAX }, signal)).runs,
  });
  const groups = usePaletteItems(query);
  const mayRun = useMay("run.create");
  const maySchedule = useMay("schedule.manage");
  const go = (to: string, search?: Readonly<Record<string, string>>): void => {
    onClose();
    void navigate({ to, ...(search === undefined ? {} : { search }) });
  };
  return (
    <Dialog title="Search" isBare className="palette" onClose={onClose}>
      <Command label="Search everything">
        <Command.Input value={text} onValueChange={setText} placeholder="Search pages, factories, runs, actions…" />
        <Command.List>
          <Command.Empty>Nothing found.</Command.Empty>
          {UUID.test(query) && (
            <Command.Item value={query} onSelect={() => go(`/runs/${query}`)}>
              Open run <span className="mono">{query}</span>
            </Command.Item>
          )}
          {(mayRun || maySchedule) && (
            <Command.Group heading="Actions">
              {mayRun && (
                <Command.Item value="Dispatch work" onSelect={() => go("/work", { dialog: "dispatch" })}>
                  <Send size={15} aria-hidden />
                  Dispatch work
                </Command.Item>
              )}
              {maySchedule && (
                <Command.Item value="Create schedule" onSelect={() => go("/schedules", { dialog: "create" })}>
                  <CalendarPlus size={15} aria-hidden />
                  Create schedule
                </Command.Item>
              )}
            </Command.Group>
          )}
          <Command.Group heading="Pages">
            {NAVIGATION.flatMap(({ entries }) => entries).map(({ label, to, icon: Icon }) => (
              <Command.Item key={label} value={label} onSelect={() => go(String(to))}>
                <Icon size={15} aria-hidden />
                {label}
              </Command.Item>
            ))}
          </Command.Group>
          {groups.map(
            ({ heading, items }) =>
              items.length > 0 && (
                <Command.Group key={heading} heading={heading}>
                  {items.map(({ id, label, detail, to }) => (
                    <Command.Item key={id} value={`${label} ${detail ?? ""} ${id}`} onSelect={() => go(to)}>
                      <span className="truncate">
                        <SafeText>{label}</SafeText>
                      </span>
                      {detail !== undefined && (
                        <span className="soft small">
                          <SafeText>{detail}</SafeText>
                        </span>
                      )}
                    </Command.Item>
                  ))}
                </Command.Group>
              ),
          )}
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

import { useState, type ReactNode } from "react";
import { useQuery } from "@tanstack/react-query";
import { api, dataOf } from "../../api/client.ts";
import { DataTable } from "../../ui/data-table.tsx";
import { ErrorView } from "../../ui/error-view.tsx";
import { count } from "../../ui/money.ts";
import { Card } from "../../ui/page.tsx";
import { orDash, percent } from "../../ui/periods.ts";
import { SafeText } from "../../ui/safe-text.tsx";
import { Select } from "../../ui/select-field.tsx";
import type { RunPath } from "./launch-settings.ts";
import { Verdict } from "./matrix.tsx";

const RUNS_MAX = 100;

/** Compares the benchmark run with another one of its suite. */
export function Comparison({ path }: { path: RunPath }): ReactNode {
  const [other, setOther] = useState("");
  const { data: runs } = useQuery({
    queryKey: ["runs", "benchmark", path.suite_uid, "choices"],
    queryFn: ({ signal }) =>
      dataOf(
        api.GET("/api/v1/factory/{factory_uid}/benchmarks/{suite_uid}/runs", {
          params: { path: { factory_uid: path.factory_uid, suite_uid: path.suite_uid }, query: { limit: RUNS_MAX } },
          signal,
        }),
      ),
  });
  const { data, error } = useQuery({
    queryKey: ["runs", "benchmark", path.suite_uid, path.run_uid, "compare", other],
    queryFn: ({ signal }) =>
      dataOf(
        api.GET("/api/v1/factory/{factory_uid}/benchmarks/{suite_uid}/runs/{run_uid}/compare", {
          params: { path, query: { other_run_uid: other } },
          signal,
        }),
      ),
    enabled: other !== "",
  });
  const choices = (runs?.data ?? []).filter(({ uid }) => uid !== path.run_uid);
  return (
    <Card title="Compare with another run">
      {choices.length === 0 && <p className="soft">The suite has no other run. Launch it again to compare two runs.</p>}
      {choices.length > 0 && (
        <Select
          label="Other run"
          value={other}
          choices={[
            { value: "", label: "Choose a run…" },
            ...choices.map(({ uid, created_at: at, state, suite_version: version }) => ({
              value: uid,
              label: `${at.slice(0, 16).replace("T", " ")} UTC, ${state}, version ${version}`,
            })),
          ]}
          onChange={setOther}
        />
      )}
      {error && <ErrorView error={error} />}
      {data && (
        <>
          <p className="soft small">
            {count(data.shared_tasks.length)} tasks are in both runs, {count(data.changed_tasks.length)} of the suite
            have changed. {data.same_manifest ? "Both runs have the same manifest." : "The manifests differ."}
          </p>
          <DataTable
            caption="Comparison"
            columns={[
              { title: "Configuration", cell: (each) => <SafeText>{each.display_name}</SafeText> },
              { title: "This run", isNumber: true, cell: (each) => orDash(each.run.pass_rate, percent) },
              { title: "Other run", isNumber: true, cell: (each) => orDash(each.other_run.pass_rate, percent) },
              { title: "Verdict", cell: (each) => <Verdict difference={each.difference} /> },
            ]}
            rows={data.configurations}
            keyOf={({ configuration_uid: uid }) => uid}
          />
        </>
      )}
    </Card>
  );
}

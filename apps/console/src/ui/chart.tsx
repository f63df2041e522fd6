import type { ReactNode } from "react";
import { scaleBand, scaleLinear } from "d3-scale";
import { line } from "d3-shape";
import { Download } from "lucide-react";
import { Button } from "./button.tsx";
import { DataTable } from "./data-table.tsx";
import { visibleText } from "./safe-text.tsx";
import { csvOf, saveFile } from "./save-file.ts";

export type Series = { readonly name: string; readonly values: readonly (number | null)[] };

type Props = {
  readonly title: string;
  /** What one label is, such as "Period". Heads the first column of the table. */
  readonly labelTitle: string;
  readonly labels: readonly string[];
  readonly series: readonly Series[];
  /** Columns of the table and the CSV that are not drawn. */
  readonly tableOnly?: readonly Series[];
  /** Bars of several series are stacked. `null` leaves a gap. */
  readonly kind: "bars" | "lines";
  readonly format: (value: number) => string;
  readonly formatTableOnly?: (value: number) => string;
  /** The figures of the whole range. */
  readonly summary?: ReactNode;
  /** Fixed upper end of the axis. Default: the largest value. */
  readonly max?: number;
};

/** The size of the drawing in its own units. It scales with the page. */
const [WIDTH, HEIGHT] = [640, 210];
const MARGIN = { top: 8, right: 8, bottom: 22, left: 62 };
const TICKS = 4;
const X_LABELS_MAX = 8;
const LABEL_CHARACTERS_MAX = 14;
/** Number of series that have a colour of their own. Further ones are drawn as one. */
const COLOURS = 6;

/** A chart with its table, which has the same numbers, and their CSV. */
export function Chart(props: Props): ReactNode {
  const { title, labelTitle, labels, series, tableOnly = [], format, formatTableOnly = format, summary } = props;
  const columns = [
    ...series.map((each) => ({ ...each, show: format })),
    ...tableOnly.map((each) => ({ ...each, show: formatTableOnly })),
  ];
  const save = (): void =>
    saveFile(
      `${title.toLowerCase().replaceAll(/[^a-z\d]+/g, "-")}.csv`,
      csvOf([
        [labelTitle, ...columns.map(({ name }) => name)],
        ...labels.map((label, index) => [label, ...columns.map(({ values }) => values[index] ?? null)]),
      ]),
    );
  const drawn = withRestSummed(series);
  const isEmpty = series.every(({ values }) => values.every((value) => value === null || value === 0));
  return (
    <section className="card chart">
      <header>
        <h2>{title}</h2>
        <Button isSmall look="quiet" aria-label={`Save “${title}” as CSV`} onClick={save}>
          <Download size={13} aria-hidden />
          CSV
        </Button>
      </header>
      <div className="body">
        {summary !== undefined && <div className="chart-summary">{summary}</div>}
        {isEmpty ? <p className="chart-nothing">Nothing in this range.</p> : <Drawing {...props} series={drawn} />}
        {!isEmpty && drawn.length > 1 && (
          <ul className="chart-legend">
            {drawn.map(({ name }, index) => (
              <li key={name} className={`series-${index}`}>
                {visibleText(name)}
              </li>
            ))}
          </ul>
        )}
        <details>
          <summary>Table</summary>
          <DataTable
            caption={`${title}: table`}
            columns={[
              { title: labelTitle, cell: (index: number) => visibleText(labels[index]!) },
              ...columns.map(({ name, values, show }) => ({
                title: visibleText(name),
                isNumber: true,
                cell: (index: number) => shown(values[index], show),
              })),
            ]}
            rows={labels.map((_label, index) => index)}
            keyOf={String}
          />
        </details>
      </div>
    </section>
  );
}

const shown = (value: number | null | undefined, format: (value: number) => string): string =>
  value === null || value === undefined ? "–" : format(value);

/** Returns the series to draw: the first ones, and the sum of the rest if there are more than colours. */
function withRestSummed(series: readonly Series[]): readonly Series[] {
  if (series.length <= COLOURS) return series;
  const rest = series.slice(COLOURS - 1);
  const values = rest[0]!.values.map((_value, index) => rest.reduce((sum, each) => sum + (each.values[index] ?? 0), 0));
  return [...series.slice(0, COLOURS - 1), { name: `${rest.length} others`, values }];
}

function Drawing({ title, labels, series, kind, format, max }: Props): ReactNode {
  const totals = labels.map((_label, index) =>
    kind === "bars"
      ? series.reduce((sum, { values }) => sum + (values[index] ?? 0), 0)
      : Math.max(0, ...series.map(({ values }) => values[index] ?? 0)),
  );
  const x = scaleBand(labels, [MARGIN.left, WIDTH - MARGIN.right]).padding(0.25);
  const y = scaleLinear([0, max ?? Math.max(...totals)], [HEIGHT - MARGIN.bottom, MARGIN.top]);
  if (max === undefined) y.nice(TICKS);
  const middle = (label: string): number => x(label)! + x.bandwidth() / 2;
  const labelEvery = Math.ceil(labels.length / X_LABELS_MAX);
  return (
    <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label={`${title}. The table has the numbers.`}>
      {y.ticks(TICKS).map((tick) => (
        <g key={tick} className="axis">
          <line x1={MARGIN.left} x2={WIDTH - MARGIN.right} y1={y(tick)} y2={y(tick)} />
          <text x={MARGIN.left - 7} y={y(tick)} dy="0.32em" textAnchor="end">
            {format(tick)}
          </text>
        </g>
      ))}
      {labels.map(
        (label, index) =>
          index % labelEvery === 0 && (
            <text key={label} className="axis-label" x={middle(label)} y={HEIGHT - 6} textAnchor="middle">
              {shortened(visibleText(label))}
            </text>
          ),
      )}
      {kind === "bars" ? (
        labels.map((label, index) => (
          <Bar key={label} x={x(label)!} width={x.bandwidth()} y={y} {...{ label, index, series, format }} />
        ))
      ) : (
        <Lines {...{ labels, series, format, middle, y }} />
      )}
    </svg>
  );
}

const shortened = (label: string): string =>
  label.length > LABEL_CHARACTERS_MAX ? `${label.slice(0, LABEL_CHARACTERS_MAX - 1)}…` : label;

type BarProps = Pick<Props, "series" | "format"> & {
  readonly label: string;
  readonly index: number;
  readonly x: number;
  readonly width: number;
  readonly y: (value: number) => number;
};

function Bar({ label, index, series, format, x, width, y }: BarProps): ReactNode {
  const tops = series.map((_each, last) =>
    series.slice(0, last + 1).reduce((sum, { values }) => sum + (values[index] ?? 0), 0),
  );
  return (
    <g>
      <title>{hoverText(label, index, series, format)}</title>
      {series.map(({ name }, layer) => {
        const [from, to] = [y(tops[layer - 1] ?? 0), y(tops[layer]!)];
        return (
          <rect key={name} className={`series-${layer}`} x={x} y={to} width={width} height={Math.max(0, from - to)} />
        );
      })}
    </g>
  );
}

type LinesProps = Pick<Props, "labels" | "series" | "format"> & {
  readonly middle: (label: string) => number;
  readonly y: (value: number) => number;
};

function Lines({ labels, series, format, middle, y }: LinesProps): ReactNode {
  return (
    <>
      {series.map(({ name, values }, layer) => {
        const path = line<number | null>()
          .defined((value) => value !== null)
          .x((_value, index) => middle(labels[index]!))
          .y((value) => y(value!));
        return <path key={name} className={`line series-${layer}`} d={path([...values]) ?? undefined} />;
      })}
      {labels.map((label, index) => (
        <g key={label}>
          <title>{hoverText(label, index, series, format)}</title>
          {series.map(({ name, values }, layer) => {
            const value = values[index];
            if (value === null || value === undefined) return null;
            return <circle key={name} className={`series-${layer}`} cx={middle(label)} cy={y(value)} r={3} />;
          })}
        </g>
      ))}
    </>
  );
}

const hoverText = (
  label: string,
  index: number,
  series: readonly Series[],
  format: (value: number) => string,
): string =>
  [label, ...series.map(({ name, values }) => `${name}: ${shown(values[index], format)}`)].map(visibleText).join("\n");

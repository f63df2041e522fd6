import { useEffect, type ReactNode } from "react";
import { pageTitle } from "./page-title.ts";
import { SafeText, visibleText } from "./safe-text.tsx";

type Props = {
  readonly title: string;
  /** Shown instead of the title, which then only names the browser tab. */
  readonly heading?: ReactNode;
  readonly subtitle?: ReactNode;
  readonly actions?: ReactNode;
  readonly children: ReactNode;
};

/** The frame of a page: its title, which also names the browser tab, its actions and its content. */
export function Page({ title, heading, subtitle, actions, children }: Props): ReactNode {
  useEffect(() => {
    pageTitle.set({ title: visibleText(title) });
  }, [title]);
  return (
    <div className="page">
      <header className="page-head">
        <div className="title">
          <h1>{heading ?? <SafeText>{title}</SafeText>}</h1>
          {subtitle !== undefined && <div className="soft">{subtitle}</div>}
        </div>
        {actions !== undefined && <div className="actions">{actions}</div>}
      </header>
      {children}
    </div>
  );
}

/** Adds what a page shows, such as an automation of a factory, to the breadcrumb and the title of the browser tab. */
export function usePageDetail(name: string | undefined): void {
  useEffect(() => {
    pageTitle.set({ detail: name === undefined ? undefined : visibleText(name) });
    return () => pageTitle.set({ detail: undefined });
  }, [name]);
}

/** Says that there is nothing, and what to do next. */
export function EmptyState({ title, children }: { title: string; children: ReactNode }): ReactNode {
  return (
    <div className="empty">
      <h2>{title}</h2>
      <div>{children}</div>
    </div>
  );
}

/** A titled box. */
export function Card({
  title,
  actions,
  children,
}: {
  title: ReactNode;
  actions?: ReactNode;
  children: ReactNode;
}): ReactNode {
  return (
    <section className="card">
      <header>
        <h2>{title}</h2>
        {actions}
      </header>
      <div className="body">{children}</div>
    </section>
  );
}

/** Names and values. Entries without a value are left out. */
export function Facts({ entries }: { entries: readonly (readonly [string, ReactNode])[] }): ReactNode {
  return (
    <dl className="facts">
      {entries
        .filter(([, value]) => value !== undefined && value !== null && value !== "")
        .map(([name, value]) => (
          <FactRow key={name} name={name} value={value} />
        ))}
    </dl>
  );
}

const FactRow = ({ name, value }: { name: string; value: ReactNode }): ReactNode => (
  <>
    <dt>{name}</dt>
    <dd>{value}</dd>
  </>
);

import { lazy, Suspense, useEffect, useRef, useState, useSyncExternalStore, type ReactNode } from "react";
import { Link, useLocation, useMatches, useRouterState } from "@tanstack/react-router";
import { Menu as MenuIcon, Search } from "lucide-react";
import { TeamEventsProvider, useLiveState } from "../api/team-events.tsx";
import icon from "../styles/icon.svg";
import { Button } from "../ui/button.tsx";
import { pageTitle } from "../ui/page-title.ts";
import { AccountMenu } from "./account-menu.tsx";
import { NAVIGATION } from "./navigation.ts";
import { useSession } from "./session.tsx";
import { TeamSwitcher } from "./team-switcher.tsx";
import { WaitingLink } from "./waiting-link.tsx";

const NoTeam = lazy(() => import("./no-team.tsx"));
const CommandPalette = lazy(() => import("./command-palette.tsx"));

/** Draws the navigation, the breadcrumb and the page. Moves the focus to the page when its path changes. */
export function Shell({ children }: { children: ReactNode }): ReactNode {
  const { me, team, isLinkViewer } = useSession();
  const [isNavigationOpen, setNavigationOpen] = useState(false);
  const [isPaletteOpen, setPaletteOpen] = useState(false);
  const content = useRef<HTMLElement>(null);
  const { pathname } = useLocation();
  const shown = useRef(pathname);
  useEffect(() => {
    setNavigationOpen(false);
    if (shown.current === pathname) return;
    shown.current = pathname;
    content.current?.focus({ preventScroll: true });
    content.current?.scrollTo(0, 0);
  }, [pathname]);
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      if (event.key.toLowerCase() !== "k" || !(event.ctrlKey || event.metaKey)) return;
      event.preventDefault();
      setPaletteOpen(true);
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, []);
  if (isLinkViewer)
    return (
      <main className="content link-viewer" id="content">
        <p className="notice">
          You view one run by its link. <a href={location.pathname}>Sign in</a> to see more.
        </p>
        {children}
      </main>
    );
  return (
    <TeamEventsProvider team={team?.uid}>
      <a className="skip-link" href="#content">
        Skip to content
      </a>
      <div className="shell">
        <aside className={isNavigationOpen ? "sidebar open" : "sidebar"} aria-label="Sidebar">
          <Link to="/" className="brand">
            <img src={icon} alt="" />
            Millwright
          </Link>
          <TeamSwitcher />
          <nav aria-label="Main">
            {NAVIGATION.map(({ label, entries }) => (
              <NavigationSection key={label ?? ""} label={label} entries={entries} />
            ))}
          </nav>
          <div className="foot">
            <AccountMenu />
          </div>
        </aside>
        <div className="main">
          <header className="topbar">
            <Button
              className="menu-button"
              isIcon
              look="quiet"
              aria-label="Navigation"
              aria-expanded={isNavigationOpen}
              onClick={() => setNavigationOpen(!isNavigationOpen)}
            >
              <MenuIcon size={16} aria-hidden />
            </Button>
            <Breadcrumb />
            <LiveState />
            <WaitingLink />
            <Button isSmall onClick={() => setPaletteOpen(true)}>
              <Search size={13} aria-hidden />
              Search <span className="kbd">Ctrl K</span>
            </Button>
          </header>
          <LoadingBar />
          <main className="content" id="content" ref={content} tabIndex={-1}>
            {me.principal.type === "user" && me.teams.length === 0 && (
              <Suspense fallback={null}>
                <NoTeam email={me.principal.email} />
              </Suspense>
            )}
            {children}
          </main>
        </div>
      </div>
      {isPaletteOpen && (
        <Suspense fallback={null}>
          <CommandPalette onClose={() => setPaletteOpen(false)} />
        </Suspense>
      )}
    </TeamEventsProvider>
  );
}

function NavigationSection({ label, entries }: (typeof NAVIGATION)[number]): ReactNode {
  return (
    <>
      {label !== undefined && <h2>{label}</h2>}
      {entries.map(({ label: name, to, icon: Icon }) => (
        <Link key={name} to={to} activeOptions={{ includeSearch: false }}>
          <Icon size={15} aria-hidden />
          {name}
        </Link>
      ))}
    </>
  );
}

/** Shows that a page is being loaded. Pages that load at once do not show it. */
function LoadingBar(): ReactNode {
  const isLoading = useRouterState({ select: (state) => state.isLoading });
  return isLoading && <div className="loading-bar" aria-hidden />;
}

function Breadcrumb(): ReactNode {
  const parents = useMatches().flatMap(({ staticData }) => staticData.parents ?? []);
  const { title, detail } = useSyncExternalStore(pageTitle.subscribe, pageTitle.get);
  return (
    <nav className="breadcrumb" aria-label="Breadcrumb">
      <ol>
        {parents.map(({ label, to }) => (
          <li key={to}>
            <Link to={to}>{label}</Link>
          </li>
        ))}
        {detail !== undefined && <li>{title}</li>}
        <li aria-current="page">{detail ?? title}</li>
      </ol>
    </nav>
  );
}

function LiveState(): ReactNode {
  const state = useLiveState();
  return (
    <span className={`live ${state}`} role="status">
      {state === "open" ? "Live" : "Reconnecting…"}
    </span>
  );
}

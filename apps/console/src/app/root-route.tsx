import { createRootRoute, Outlet } from "@tanstack/react-router";
import { EmptyState } from "../ui/page.tsx";
import { ErrorView } from "../ui/error-view.tsx";
import { ToastProvider } from "../ui/toasts.tsx";
import { TooltipProvider } from "../ui/tooltip.tsx";
import { SessionBoundary } from "./session.tsx";
import { Shell } from "./shell.tsx";

declare module "@tanstack/react-router" {
  interface StaticDataRouteOption {
    /** Pages above this one in the breadcrumb, topmost first. */
    readonly parents?: readonly { readonly label: string; readonly to: string }[];
  }
}

/** The parent of all pages: signs in, and draws the shell around the page. */
export const rootRoute = createRootRoute({
  component: () => (
    <TooltipProvider delayDuration={300}>
      <ToastProvider>
        <SessionBoundary>
          <Shell>
            <Outlet />
          </Shell>
        </SessionBoundary>
      </ToastProvider>
    </TooltipProvider>
  ),
  errorComponent: ({ error, reset }) => <ErrorView error={error} onRetry={reset} />,
  notFoundComponent: () => (
    <EmptyState title="There is no such page">
      Check the address, or press Ctrl-K to search for a page or a run.
    </EmptyState>
  ),
});

import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { QueryClientProvider } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { createQueryClient } from "./api/queries.ts";
import { router } from "./app/router.ts";
import { applyTheme } from "./app/theme.ts";
import "./styles/tokens.css";
import "./styles/base.css";
import "./styles/components.css";
import "./styles/shell.css";
import "./styles/run.css";
import "./styles/work.css";
import "./styles/factories.css";
import "./styles/charts.css";

applyTheme();
createRoot(document.querySelector("#root")!).render(
  <StrictMode>
    <QueryClientProvider client={createQueryClient()}>
      <RouterProvider router={router} />
    </QueryClientProvider>
  </StrictMode>,
);

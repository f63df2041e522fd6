import { createContext, useCallback, useContext, useMemo, useState, type ReactNode } from "react";
import { X } from "lucide-react";
import { ApiError } from "../api/problem.ts";
import { Button } from "./button.tsx";

type Toast = { readonly id: number; readonly text: string; readonly isBad: boolean };
type Toasts = { success(text: string): void; failure(error: unknown): void };

const Context = createContext<Toasts>({ success: () => {}, failure: () => {} });
const SUCCESS_MS = 5_000;
let nextId = 1;

/** Renders messages about finished actions. Failures stay until they are closed. */
export function ToastProvider({ children }: { children: ReactNode }): ReactNode {
  const [toasts, setToasts] = useState<readonly Toast[]>([]);
  const remove = useCallback((id: number) => setToasts((all) => all.filter((toast) => toast.id !== id)), []);
  const value = useMemo<Toasts>(() => {
    const add = (text: string, isBad: boolean): number => {
      const id = nextId++;
      setToasts((all) => [...all.slice(-3), { id, text, isBad }]);
      return id;
    };
    return {
      success(text) {
        const id = add(text, false);
        setTimeout(() => remove(id), SUCCESS_MS);
      },
      failure: (error) => void add(textOf(error), true),
    };
  }, [remove]);
  return (
    <Context.Provider value={value}>
      {children}
      <div className="toasts" role="status" aria-live="polite">
        {toasts.map(({ id, text, isBad }) => (
          <div key={id} className={isBad ? "toast bad" : "toast"}>
            <div>{text}</div>
            <Button look="quiet" isIcon isSmall aria-label="Close message" onClick={() => remove(id)}>
              <X size={14} aria-hidden />
            </Button>
          </div>
        ))}
      </div>
    </Context.Provider>
  );
}

function textOf(error: unknown): string {
  if (!(error instanceof ApiError)) return String(error);
  return error.requestId === undefined ? error.message : `${error.message} (request ${error.requestId})`;
}

/** Returns functions that report the result of an action. */
export const useToasts = (): Toasts => useContext(Context);

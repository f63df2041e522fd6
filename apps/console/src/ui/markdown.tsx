import type { ReactNode } from "react";
import ReactMarkdown, { type Components, type ExtraProps } from "react-markdown";
import remarkGfm from "remark-gfm";
import { CopyButton } from "./copy.tsx";
import { SafeText, safeHref, visibleText } from "./safe-text.tsx";

/**
 * Shows Markdown of a run. HTML in it is shown as text, links other than http and https lose their target, and images
 * become links, so that nothing is requested from another host.
 */
export function Markdown({ children }: { children: string }): ReactNode {
  return (
    <div className="markdown">
      <ReactMarkdown remarkPlugins={[remarkGfm]} components={COMPONENTS} urlTransform={(url) => safeHref(url) ?? ""}>
        {children}
      </ReactMarkdown>
    </div>
  );
}

const texts = (children: ReactNode): ReactNode =>
  Array.isArray(children) ? (
    children.map((child: ReactNode, index) =>
      typeof child === "string" ? <SafeText key={index}>{child}</SafeText> : child,
    )
  ) : typeof children === "string" ? (
    <SafeText>{children}</SafeText>
  ) : (
    children
  );

/** A block of code with a button that copies it. The fence of a script is part of what an agent has to receive. */
function CodeBlock({ node, children }: ExtraProps & { children?: ReactNode }): ReactNode {
  const code = node?.children[0];
  const text =
    code?.type === "element" ? code.children.map((each) => (each.type === "text" ? each.value : "")).join("") : "";
  const classes = code?.type === "element" ? code.properties["className"] : undefined;
  const isScript = Array.isArray(classes) && classes.includes("language-scripted");
  const source = isScript ? `\`\`\`scripted\n${text}\`\`\`\n` : text;
  return (
    <div className="code-block">
      <pre tabIndex={0}>
        {isScript ? (
          <code>
            <SafeText>{source}</SafeText>
          </code>
        ) : (
          children
        )}
      </pre>
      <CopyButton text={visibleText(source)} label="code" />
    </div>
  );
}

const COMPONENTS: Components = {
  a: ({ href, children }) =>
    href ? (
      <a href={href} target="_blank" rel="noopener noreferrer nofollow">
        {texts(children)}
      </a>
    ) : (
      <span>{texts(children)}</span>
    ),
  img: ({ src, alt }) =>
    typeof src === "string" && src ? (
      <a href={src} target="_blank" rel="noopener noreferrer nofollow">
        {`[image: ${alt ?? src}]`}
      </a>
    ) : (
      <span>{`[image: ${alt ?? ""}]`}</span>
    ),
  h1: ({ children }) => <h3>{texts(children)}</h3>,
  h2: ({ children }) => <h3>{texts(children)}</h3>,
  h3: ({ children }) => <h3>{texts(children)}</h3>,
  p: ({ children }) => <p>{texts(children)}</p>,
  li: ({ children }) => <li>{texts(children)}</li>,
  td: ({ children }) => <td>{texts(children)}</td>,
  th: ({ children }) => <th>{texts(children)}</th>,
  pre: CodeBlock,
  code: ({ children }) => <code>{texts(children)}</code>,
  strong: ({ children }) => <strong>{texts(children)}</strong>,
  em: ({ children }) => <em>{texts(children)}</em>,
  // the state of a task list item
  input: ({ checked }) => <span aria-hidden>{checked ? "☑ " : "☐ "}</span>,
};

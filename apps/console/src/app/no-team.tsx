import type { ReactNode } from "react";
import { OwnInvitations } from "../pages/team/invitations.tsx";
import { SafeText } from "../ui/safe-text.tsx";

/** Tells a person without a team what to do, and shows their invitations. */
export default function NoTeam({ email }: { email: string | undefined }): ReactNode {
  return (
    <>
      <p className="notice" role="status">
        You are in no team. Join one that has invited you, or ask an owner of a team to invite{" "}
        {email === undefined ? "you" : <SafeText>{email}</SafeText>}.
      </p>
      <OwnInvitations />
    </>
  );
}

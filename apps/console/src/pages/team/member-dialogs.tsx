import { useState, type ReactNode } from "react";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { api, dataOf } from "../../api/client.ts";
import { useIdempotencyKey } from "../../api/idempotency.ts";
import { ApiError } from "../../api/problem.ts";
import { signInOptions } from "../../api/queries.ts";
import type { components } from "../../gen/api.ts";
import { FormDialog } from "../../ui/form-dialog.tsx";
import { SafeText } from "../../ui/safe-text.tsx";
import { choicesOf, SelectField } from "../../ui/select-field.tsx";
import { TextField } from "../../ui/text-field.tsx";
import { useToasts } from "../../ui/toasts.tsx";

type Member = components["schemas"]["Member"];
type NewMember = components["schemas"]["NewMember"];
type Role = Member["role"];
const ROLES = choicesOf<Role>({
  owner: "Owner: everything, including owners",
  admin: "Admin: members, keys, secrets and settings",
  member: "Member: works with runs and factories",
  viewer: "Viewer: reads",
});

type DialogProps = { readonly teamUid: string; readonly onClose: () => void };

const RoleField = (props: { value: Role; onChange: (role: Role) => void }): ReactNode => (
  <SelectField label="Role" choices={ROLES} {...props} />
);

/** Adds a person who is new to the platform, or invites one who already uses it. */
export function AddMemberDialog({
  teamUid,
  onClose,
  onAdded,
}: DialogProps & {
  /** Receives the response, the only one that contains the person's first key. */
  onAdded: (member: NewMember) => void;
}): ReactNode {
  const queries = useQueryClient();
  const toasts = useToasts();
  const provider = useQuery(signInOptions).data?.provider;
  const [email, setEmail] = useState("");
  const [name, setName] = useState("");
  const [role, setRole] = useState<Role>("member");
  const header = useIdempotencyKey([email, name, role]);
  const add = useMutation({
    gcTime: 0, // the response contains a key
    mutationFn: async () => {
      const path = { uid: teamUid };
      const person = { email: email.trim(), role };
      if (!provider)
        try {
          return await dataOf(
            api.POST("/api/v1/team/{uid}/members", {
              params: { path, header },
              body: { ...person, ...(name.trim() === "" ? {} : { display_name: name.trim() }) },
            }),
          );
        } catch (error) {
          if (!(error instanceof ApiError) || error.problem.reason !== "invitation_required") throw error;
        }
      await api.POST("/api/v1/team/{uid}/invitations", { params: { path, header }, body: person });
      return undefined;
    },
    onSuccess: (member) => {
      void queries.invalidateQueries({ queryKey: ["members", teamUid] });
      void queries.invalidateQueries({ queryKey: ["invitations", teamUid] });
      if (member) return onAdded(member);
      toasts.success(`${email.trim()} is invited, and accepts after signing in.`);
      return onClose();
    },
  });
  return (
    <FormDialog
      title="Add member"
      action="Add"
      isPending={add.isPending}
      error={add.error}
      onSubmit={() => add.mutate()}
      onClose={onClose}
    >
      <p className="soft">
        {provider
          ? `The person accepts the invitation after signing in with ${provider.label}.`
          : "A person who is new to the platform joins at once and receives a first key. A person who already uses it receives an invitation."}
      </p>
      <TextField label="E-mail" type="email" required value={email} onChange={setEmail} />
      {!provider && <TextField label="Name" value={name} onChange={setName} />}
      <RoleField value={role} onChange={setRole} />
    </FormDialog>
  );
}

export function ChangeRoleDialog({ teamUid, member, onClose }: DialogProps & { member: Member }): ReactNode {
  const queries = useQueryClient();
  const toasts = useToasts();
  const [role, setRole] = useState(member.role);
  const change = useMutation({
    mutationFn: () =>
      dataOf(
        api.PATCH("/api/v1/team/{uid}/members/{userUid}", {
          params: { path: { uid: teamUid, userUid: member.uid } },
          body: { role },
        }),
      ),
    onSuccess: () => {
      toasts.success(`${member.email} has the role ${role}.`);
      void queries.invalidateQueries({ queryKey: ["members", teamUid] });
      void queries.invalidateQueries({ queryKey: ["whoami"] });
      onClose();
    },
  });
  return (
    <FormDialog
      title="Change role"
      action="Change"
      isPending={change.isPending}
      error={change.error}
      onSubmit={() => change.mutate()}
      onClose={onClose}
    >
      <p>
        <SafeText>{member.email}</SafeText>
      </p>
      <RoleField value={role} onChange={setRole} />
    </FormDialog>
  );
}

export function RemoveMemberDialog({ teamUid, member, onClose }: DialogProps & { member: Member }): ReactNode {
  const queries = useQueryClient();
  const toasts = useToasts();
  const remove = useMutation({
    mutationFn: () =>
      api.DELETE("/api/v1/team/{uid}/members/{userUid}", {
        params: { path: { uid: teamUid, userUid: member.uid } },
      }),
    onSuccess: () => {
      toasts.success(`${member.email} is removed.`);
      void queries.invalidateQueries({ queryKey: ["members", teamUid] });
      void queries.invalidateQueries({ queryKey: ["keys", teamUid] });
      onClose();
    },
  });
  return (
    <FormDialog
      title="Remove member"
      action="Remove"
      isDanger
      isPending={remove.isPending}
      error={remove.error}
      onSubmit={() => remove.mutate()}
      onClose={onClose}
    >
      <p>
        <SafeText>{member.email}</SafeText> loses access to the team. Their keys in the team are revoked.
      </p>
    </FormDialog>
  );
}

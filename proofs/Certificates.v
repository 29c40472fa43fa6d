(* Certificates: of one program by a tree, and of all nodes of all lengths by one bound. *)
From mathcomp Require Import all_ssreflect all_algebra.
From Quiltwork Require Import Statements Sides.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Tree.
Variables (R : realFieldType) (S : finType).

Variables (A : S -> S -> R) (limited : rel S) (u : S -> R).
Variables (parent : S -> S) (pass : S -> R).

Theorem tree_bound (c v : S -> R) :
  right_signs A limited u parent pass c -> feasible A limited v -> \sum_z c z * v z <= 0.
Proof.
move=> [u0 flw up low] [v0 feas].
pose d z := v z / u z.
have d0 z : 0 <= d z by rewrite divr_ge0 // ltW.
have cd z : c z * v z = (c z * u z) * d z.
  by rewrite /d mulrCA -mulrA mulrCA divff ?mulr1 1?mulrC ?gt_eqF.
have frac a b y z : a * u z <= b * u y -> a / u y <= b / u z.
  by move=> le; rewrite ler_pdivr_mulr // mulrAC ler_pdivl_mulr.
have edge z : pass z * d z <= pass z * d (parent z).
  case: (ltrgt0P (pass z)) => [pos|neg|->]; last by rewrite !mul0r.
    have [ne lim le] := up z pos; apply: ler_wpmul2l; first exact: ltW.
    apply: frac; apply: le_trans (ler_wpmul2r (ltW (u0 _)) (feas _ _ ne lim)) _.
    by rewrite mulrAC mulrC ler_wpmul2l.
  have [ne lim le] := low z neg; apply: ler_wnmul2l; first exact: ltW.
  rewrite eq_sym in ne.
  apply: frac; apply: le_trans (ler_wpmul2r (ltW (u0 _)) (feas _ _ ne lim)) _.
  by rewrite mulrAC mulrC ler_wpmul2l.
have le1 : \sum_z c z * v z
    <= \sum_z (pass z * d z - (\sum_(y | parent y == z) pass y) * d z).
  apply: ler_sum => z _; rewrite cd -mulrBl; apply: ler_wpmul2r => //.
  by rewrite ler_subr_addr.
apply: le_trans le1 _; rewrite sumrB subr_le0.
have -> : \sum_z (\sum_(y | parent y == z) pass y) * d z = \sum_y pass y * d (parent y).
  rewrite [RHS](partition_big parent predT) //=; apply: eq_bigr => z _.
  by rewrite mulr_suml; apply: eq_bigr => y /eqP ->.
by apply: ler_sum => z _; exact: edge.
Qed.

(* The program's optimum: p.v <= L (q.v) for every feasible v. *)
Corollary program_bound (p q v : S -> R) (L : R) :
  right_signs A limited u parent pass (fun z => p z - L * q z) -> feasible A limited v ->
  \sum_z p z * v z <= L * (\sum_z q z * v z).
Proof.
move=> signs feas; have := tree_bound signs feas.
under eq_bigr do rewrite mulrBl -mulrA.
by rewrite sumrB subr_le0 mulr_sumr.
Qed.

(* The same from a flow along the limits. *)
Theorem flow_bound (w : S -> S -> R) (p q v : S -> R) (L : R) :
  (forall z y, 0 <= w z y) -> (forall z y, w z y != 0 -> z != y /\ limited z y) ->
  (forall z, p z - L * q z - (\sum_y w z y) + (\sum_y w y z * A y z) <= 0) ->
  feasible A limited v -> \sum_z p z * v z <= L * (\sum_z q z * v z).
Proof.
move=> w0 along excess [v0 feas].
have edge z y : w z y * v z <= w z y * A z y * v y.
  case: (eqVneq (w z y) 0) => [->|ne]; first by rewrite !mul0r.
  have [zy lim] := along z y ne; rewrite -mulrA; apply: ler_wpmul2l => //; exact: feas.
have : \sum_z (p z - L * q z - (\sum_y w z y) + (\sum_y w y z * A y z)) * v z <= 0.
  rewrite -oppr_ge0 -sumrN; apply: sumr_ge0 => z _.
  by rewrite oppr_ge0; exact: mulr_le0_ge0.
have -> : \sum_z (p z - L * q z - (\sum_y w z y) + (\sum_y w y z * A y z)) * v z
    = \sum_z p z * v z - L * (\sum_z q z * v z) - \sum_z \sum_y w z y * v z
      + \sum_z \sum_y w z y * A z y * v y.
  rewrite [X in _ = _ + X]exchange_big /= mulr_sumr -!sumrB -big_split /=.
  by apply: eq_bigr => z _; rewrite !mulrDl !mulNr -mulrA !mulr_suml.
move=> le; rewrite -subr_le0; apply: le_trans le; rewrite -addrA ler_addl addrC subr_ge0.
by apply: ler_sum => z _; apply: ler_sum => y _; exact: edge.
Qed.

(* The largest entry needs no limits: where there are none, this is the program. *)
Lemma largest_entry (p q v : S -> R) (L : R) :
  (forall z, p z <= L * q z) -> feasible A limited v ->
  \sum_z p z * v z <= L * (\sum_z q z * v z).
Proof.
move=> le [v0 _]; rewrite mulr_sumr; apply: ler_sum => z _.
by rewrite mulrA ler_wpmul2r.
Qed.

End Tree.

Section Endless.
Variables (R : realFieldType) (S : finType).
Variables (K : S -> S -> R) (e : S -> R) (D : seq S -> seq S -> R).
Variables (f : nat -> S -> S -> R) (g : nat -> R).
Hypotheses (K0 : forall x z, 0 <= K x z) (e0 : forall x, 0 <= e x).

(* e is what one step leaves as it is: 1 on the right, a stationary law on the left. *)
Hypothesis stationary : forall x, \sum_z K x z * e z = e x.

(* The levels of every node are at most these. *)
Variables (level : S -> S -> R) (most : R).
Hypotheses (level_le : forall j z z', f j z z' <= level z z').
Hypotheses (most_le : forall j, 0 <= g j <= most) (most1 : 1 <= most).

Variables (r : S -> S -> R) (finite : rel S).
Hypothesis cert : certificate K e level most r finite.
Hypothesis level1 : forall z z', 1 <= level z z'.

Lemma steps_power m j x z : steps (fun=> K) m j x z = power K m x z.
Proof. by elim: m x => //= m IH x; apply: eq_bigr => y _; rewrite IH. Qed.

Lemma power_ge0 m x z : 0 <= power K m x z.
Proof. by elim: m x => //= m IH x; apply: sumr_ge0 => y _; rewrite mulr_ge0. Qed.

Lemma power_e m x : \sum_z power K m x z * e z = e x.
Proof.
elim: m x => [|m IH] x //=.
under eq_bigr do rewrite mulr_suml.
rewrite exchange_big /= -[RHS]stationary; apply: eq_bigr => y _.
by rewrite -(IH y) mulr_sumr; apply: eq_bigr => z _; rewrite mulrA.
Qed.

Lemma beyond_e k x : beyond (fun=> K) e k x (fun=> 1) = e x.
Proof.
elim: k x => [|k IH] x /=; first by rewrite mulr1.
by under eq_bigr do rewrite IH; exact: stationary.
Qed.

Lemma most_prod a n : \prod_(a <= j < a + n) g j <= most ^+ n.
Proof.
elim: n => [|n IH]; first by rewrite addn0 big_geq ?expr0.
rewrite addnS big_nat_recr ?leq_addr //= exprSr.
have /andP[g0 gm] := most_le (a + n); apply: ler_pmul => //.
by apply: prodr_ge0 => j _; have /andP[] := most_le j.
Qed.

Theorem certificate_recursion :
  recursion (fun=> K) e f g (fun=> predT) (fun _ => r) (fun=> finite).
Proof.
move=> k x x' _ _ ne fin; split; first exact: (bound_ge0 cert).
have [m step] := bound_step cert ne fin.
have [lt|le] := ltnP m k.
  right; exists m, (k - m.+1)%N; split; first by rewrite -addSn subnKC.
  move=> u [u0 adm]; set j := (k - m.+1)%N.
  have bu : bounded level r finite u.
    split=> // z z' zz' fz; apply: le_trans (adm z z' isT isT zz' fz) _.
    apply: ler_wpmul2r => //; apply: ler_wpmul2r; first exact: (bound_ge0 cert).
    exact: level_le.
  have eqp y : \sum_(z | predT z) steps (fun=> K) m j y z * u z = \sum_z power K m y z * u z.
    by apply: eq_bigr => z _; rewrite steps_power.
  rewrite !eqp.
  apply: le_trans (step u bu); apply: ler_wpmul2r.
    by apply: sumr_ge0 => z _; rewrite mulr_ge0 ?power_ge0.
  by rewrite -addnS addnC; exact: most_prod.
left; rewrite /by_total !beyond_e.
have be : bounded level r finite e.
  split=> // z z' zz' fz; apply: le_trans (bound_start cert zz' fz) _.
  rewrite -mulrA ler_pemull // mulr_ge0 // (bound_ge0 cert) //.
have := step e be; rewrite !power_e; apply: le_trans; apply: ler_wpmul2r => //.
apply: le_trans (most_prod 0 k) _.
by rewrite ler_weexpn2l.
Qed.

End Endless.
